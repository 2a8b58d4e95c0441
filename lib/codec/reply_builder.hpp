#pragma once

#include <hiredis/read.h>

#include <codec/reply.hpp>
#include <codec/reply_reader.hpp>
#include <cstddef>

namespace latchkey::detail {

// What hiredis' reader builds a reply with: our tree directly, within our limits. Its storage is used again for
// the next reply. Also the place where the difference between hiredis 0.14 and 1.x is hidden.
struct reply_builder {
  static constexpr std::size_t max_depth = 8;       // arrays in each other
  static constexpr std::size_t max_line = 1 << 16;  // a status, an error
  static constexpr std::size_t max_number = 32;     // the digits of a number or a length

  reply root;
  std::size_t elements = 0;       // announced so far by the arrays of this reply
  char const* problem = nullptr;  // why this builder made the reader stop
};

// The functions that fill the `reply_builder` to which a reader's `privdata` points.
redisReplyObjectFunctions& building_functions();

// Looks at what a reader waits for. False: an announced length is out of bounds, or a line has no end; `problem` says
// so.
bool unfinished_is_bounded(redisReader const& reader, char const*& problem);

}  // namespace latchkey::detail
