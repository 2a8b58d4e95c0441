#pragma once

#include <base/instant.hpp>
#include <latchkey/export.hpp>

#include <memory>
#include <string_view>

namespace latchkey::detail {

class core;

// How latchkey::testing moves the time of the clients of this process. Programs without it pay a look at one flag for
// each client that they make.
class test_clock {
 public:
  // Clients that are made from now on follow.
  LATCHKEY_EXPORT static void begin() noexcept;
  // By this much, of which nothing is ever taken back. What is due by then is done by the clients' own threads.
  LATCHKEY_EXPORT static void advance(nanoseconds by);
  // Waits until the clients of the server at this socket have done what is due, and have their answers, so that it does
  // not matter how far their threads were. For a moment of real time at most: some cannot, and those whose thread this
  // is are not waited for.
  LATCHKEY_EXPORT static void settle(std::string_view socket);
  // The clients of the server at this socket ask at once whether they still hold what they renew.
  LATCHKEY_EXPORT static void doubt_holds(std::string_view socket);

  static void enlist(std::shared_ptr<core> const& core);
};

}  // namespace latchkey::detail
