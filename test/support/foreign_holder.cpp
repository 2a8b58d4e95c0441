#include <support/foreign_holder.hpp>

#include <stdexcept>

namespace latchkey::test {

foreign_holder::foreign_holder(redis_server const& server, std::string lock, std::chrono::milliseconds lease)
    : admin_(server.admin()), name_(std::move(lock)) {
  if (admin_.integer("EXISTS", name_) != 0) throw std::logic_error("the lock is held already");
  admin_.ok("HINCRBY", name_, "0b4f7a3e-0000-4000-8000-000000000001:57", 1);
  admin_.ok("PEXPIRE", name_, lease.count());
}

void foreign_holder::release_and(std::vector<std::vector<std::string>> const& first) {
  admin_.ok("MULTI");
  for (auto const& words : first) {
    admin_.send(words);
    if (auto const queued = admin_.receive(); queued.is_error()) throw std::runtime_error(queued.text);
  }
  admin_.ok("DEL", name_);
  admin_.ok("PUBLISH", channel_of(name_), "0");
  for (auto const& answer : admin_.ok("EXEC").elements)
    if (answer.is_error()) throw std::runtime_error(answer.text);
}

void foreign_holder::remove() { admin_.ok("DEL", name_); }

void foreign_holder::rename(std::string_view to) { admin_.ok("RENAME", name_, to); }

}  // namespace latchkey::test
