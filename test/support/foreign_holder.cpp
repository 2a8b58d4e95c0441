#include <support/redis_server.hpp>

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

namespace {

constexpr auto end_mark = "the watch is over";

// The words of a line of MONITOR behind the brackets. No word here has quotes or backslashes in it.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> made;
  for (auto at = line.find("] \""); at != line.npos;) {
    auto const begin = line.find('"', at);
    if (begin == line.npos) break;
    auto const end = line.find('"', begin + 1);
    if (end == line.npos) break;
    made.emplace_back(line.substr(begin + 1, end - begin - 1));
    at = end + 1;
  }
  return made;
}

}  // namespace

lock_watch::lock_watch(redis_server const& server, std::string lock)
    : admin_(server.admin()),
      monitor_(server.admin()),
      lock_(std::move(lock)),
      queue_("redisson_lock_queue:{" + lock_ + "}") {
  monitor_.ok("MONITOR");
  watcher_ = std::thread([this] { watch(); });
}

lock_watch::findings lock_watch::stop() {
  admin_.ok("ECHO", end_mark);
  watcher_.join();
  std::sort(found_.free.begin(), found_.free.end());
  return found_;
}

void lock_watch::watch() {
  for (;;) {
    auto const line = monitor_.receive(std::chrono::hours(1)).text;
    if (line.find(end_mark) != line.npos) return;
    see(line);
  }
}

// Only what scripts do: clients do nothing by themselves to these keys.
void lock_watch::see(std::string_view line) {
  if (line.find(" lua] ") == line.npos) return;
  auto const words = words_of(line);
  if (words.size() < 2) return;
  auto const& what = words[0];
  if (words[1] == lock_) {
    if (what == "hincrby" || what == "hset") held_ = true;
    if (what == "del") held_ = false;
  } else if (words[1] == queue_) {
    if (what == "rpush") line_.push_back(words.at(2));
    if (what == "lpop" && !line_.empty()) line_.pop_front();
    if (what == "lrem") std::erase(line_, words.at(3));
  } else {
    return;
  }
  auto const dot = line.find('.');
  std::chrono::microseconds const now(std::stoll(std::string(line.substr(0, dot))) * 1'000'000 +
                                      std::stoll(std::string(line.substr(dot + 1, 6))));
  bool const idle = !held_ && !line_.empty();
  if (idle && since_.count() < 0) since_ = now;
  if (!idle && since_.count() >= 0) {
    found_.free.push_back(now - since_);
    since_ = std::chrono::microseconds(-1);
  }
}

}  // namespace latchkey::test
