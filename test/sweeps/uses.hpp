#pragma once

#include <latchkey/client.hpp>
#include <latchkey/count_down_latch.hpp>
#include <latchkey/permit_semaphore.hpp>
#include <latchkey/semaphore.hpp>
#include <support/patience.hpp>

#include <boost/asio/cancellation_signal.hpp>

#include <functional>
#include <string>
#include <vector>

namespace latchkey::test {

using clients = std::vector<client>;  // one is enough here

// Something that a program does with one kind, from nothing to nothing.
struct use {
  std::string kind;
  std::string what;
  std::function<void(clients const&, std::string const& name)> run;
  // Holds nobody anything of this name any more?
  std::function<bool(clients const&, std::string const& name)> is_free;
  bool is_lock = false;
};

// Every operation of every kind: for sweeps in which something fails at every step.
std::vector<use> const& every_use();

// A call that may have to wait: what must be there before, how it begins, and what lets it end.
struct waiting_call {
  std::string kind;
  // Makes it wait; what it returns lets it go on.
  std::function<std::function<void()>(clients const& theirs, std::string const& name)> occupy;
  std::function<void(clients const&, std::string const& name, asio::cancellation_slot, std::function<void(error_code)>)>
      begin;
  std::function<bool(clients const&, std::string const& name)> is_free;
  // Not empty: what was granted stays taken until this is done.
  std::function<void(clients const& theirs, std::string const& name)> give_back{};
};

std::vector<waiting_call> const& every_waiting_call();

// How long they wait at most: for a lock that nobody has, so only where there is no server.
inline milliseconds sweep_wait = patience;

// How long a hold of these lasts when nobody gives it back.
inline constexpr milliseconds sweep_lease = 400ms * slowness;

}  // namespace latchkey::test
