#pragma once

#include <codec/reply.hpp>
#include <fuzz/input.hpp>
#include <machine/actions.hpp>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::fuzz {

using command = std::vector<std::string>;

// One connection as the other side sees it: commands that wait for an answer.
struct peer {
  detail::role as = detail::role::shared;
  std::uint32_t serial = 0;
  bool open = false;      // else the engine still connects
  bool lendable = false;  // callers may borrow it
  detail::reply_reader reader{};
  std::deque<command> asked{};
  std::vector<std::string> channels{};

  void hear(std::string_view bytes);
};

// A reply that a server could give, in the words of the protocol: one of those with a meaning, chosen by `which`; the
// first one is what the caller hopes for. It remembers nothing, so two answers need not fit together.
std::string plausible(peer& of, command const& asked, std::size_t which);

}  // namespace latchkey::fuzz
