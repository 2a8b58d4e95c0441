#pragma once

#include <latchkey/latchkey.hpp>
#include <latchkey/testing/server.hpp>
#include <support/catch.hpp>
#include <support/patience.hpp>

#include <algorithm>
#include <future>
#include <memory>

namespace latchkey::test {

// A loss that is waited for.
class watched_loss {
 public:
  explicit watched_loss(lease& of)
      : heard_(std::make_shared<std::promise<error_code>>()), future_(heard_->get_future()) {
    of.on_lost([heard = heard_](error_code const& why) { heard->set_value(why); });
  }
  // False: nobody told of it in time.
  bool came() { return future_.wait_for(patience) == std::future_status::ready; }
  // Nobody has told so far.
  bool is_out() { return future_.wait_for(0s) != std::future_status::ready; }

 private:
  std::shared_ptr<std::promise<error_code>> heard_;
  std::future<error_code> future_;
};

inline bool waits(client const& who, std::uint64_t how_many = 1) {
  return wait_until([&] { return who.snapshot().waiting == how_many; });
}

// How many commands begin so.
inline std::size_t sent(testing::server const& redis, std::string_view start) {
  auto const all = redis.commands();
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [&](auto const& line) { return line.starts_with(start); }));
}

template <class T>
T got(std::future<T> from) {
  if (from.wait_for(patience) != std::future_status::ready) throw std::runtime_error("nothing came in time");
  return from.get();
}

}  // namespace latchkey::test
