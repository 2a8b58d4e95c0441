#pragma once

#include <wire/node_address.hpp>

#include <cstdint>
#include <optional>

namespace latchkey::detail {

// Which server has the names of a client, by what others claim of it. A claim with an epoch is believed only if no
// later one was: what a stale witness says does not lead back. Knows no time.
class routes {
 public:
  struct route {
    node_address at;
    std::uint64_t epoch = 0;
  };
  enum class verdict : unsigned char {
    stale,    // a later claim is known
    known,    // nothing changes
    again,    // the same server, elected again: another one had them meanwhile, and perhaps not all of what was done
    changes,  // from now on they are there
  };

  // Nobody has said yet where they are.
  bool empty() const { return !now_; }
  route const& now() const { return *now_; }

  // `works`: the server that has them now answers.
  verdict claim(node_address at, std::uint64_t epoch, bool works);

 private:
  std::optional<route> now_;
};

}  // namespace latchkey::detail
