// A user with the rights of its row can use a kind; with one of them less he is told which, and nothing else happens.
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/configs.hpp>
#include <support/rights.hpp>

#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

using namespace latchkey;
using namespace latchkey::outside;
using namespace latchkey::test;

namespace {

// Everything that a user of a kind was told.
struct told {
  milliseconds const brief;  // how long he waits for what nobody keeps him from
  std::string errors, unserved{};
  int overlaps = 0;

  template <class Call>
  void operator()(char const* what, Call&& call) {
    try {
      call();
    } catch (boost::system::system_error const& error) {
      errors += std::string(what) + ": " + error.what() + "\n";
    }
  }
  // What he was told, or found, is what whoever may do all that would be.
  void served(char const* what, bool so) {
    if (!so) unserved += std::string(what) + "\n";
  }
};

// Users run beside each other, and Catch2 is for one thread.
template <class T>
T answer_of(std::future<T>&& future) {
  if (future.wait_for(patience) != std::future_status::ready) throw std::runtime_error("no answer in time");
  return future.get();
}

// In vain; on a busy machine without an answer in time, which tells nothing of rights.
void try_for_a_moment(distributed_lock const& lock) try {
  static_cast<void>(lock.acquire({.wait = 20ms}));
} catch (lock_error const& error) {
  if (error.code() != errc::timeout) throw;
}

// Two owners of this client and a client with all rights, who must never hold beside each other.
void use_lock(told& say, distributed_lock const& lock, distributed_lock const& foreign, bool reentrant,
              event_log const& log) {
  auto const excluded = [&](lease const& mine) {
    if (!mine.held()) return;
    if (lease const theirs = foreign.acquire({.wait = 0ms}); theirs) say.overlaps += mine.held();
  };
  lease held;
  say("acquire", [&] { held = lock.acquire({.wait = 5s}); });  // connecting included
  say.served("acquire", held.held());
  excluded(held);
  if (reentrant && held) say("again", [&] { lock.acquire({.wait = say.brief, .owner = held.owner()}).release(); });
  int const before = log.count(event_type::waiting);
  auto waiter = lock.async_acquire({.wait = 10 * say.brief * slowness}, asio::use_future);  // it is to be handed on to
  auto const waits = [&] {  // or, of readers, is in already
    return log.count(event_type::waiting) > before || waiter.wait_for(0s) == std::future_status::ready;
  };
  if (held && wait_until(waits, 5 * say.brief)) {
    // No event tells that it listens and has tried once more; the query behind that is answered after it.
    std::this_thread::sleep_for(300ms);
  }
  say("is_locked", [&] { static_cast<void>(answer_of(lock.async_is_locked(asio::use_future))); });
  // One that gives up.
  if (held) say("try", [&] { try_for_a_moment(lock); });
  say("release", [&] { held.release(); });
  lease next;
  say("wait", [&] { next = answer_of(std::move(waiter)); });
  say.served("wait", next.held());
  excluded(next);
  say("extend", [&] { say.served("extend", next && next.extend(50s)); });
  say("is_locked", [&] { static_cast<void>(lock.is_locked()); });
  say("is_held_by", [&] { say.served("is_held_by", lock.is_held_by(next.owner())); });
  say("hold_count", [&] { say.served("hold_count", lock.hold_count(next.owner()) == 1); });
  say("time", [&] { static_cast<void>(lock.remaining_time_to_live()); });
  excluded(next);
  say("release", [&] { next.release(); });
  say("force", [&] {
    lease const third = lock.acquire({.wait = say.brief});
    say.served("force", lock.force_unlock());
  });
}

void use_semaphore(told& say, client& own, client&, std::string const& name, event_log const& log) {
  auto const permits = own.get_semaphore(name);
  say("set", [&] { say.served("set", permits.try_set_permits(1)); });
  say("acquire", [&] { say.served("acquire", permits.try_acquire(1, say.brief)); });
  auto waiter = permits.async_try_acquire(2, 10 * say.brief, asio::use_future);
  static_cast<void>(wait_until([&] { return log.count(event_type::waiting) > 0; }, 5 * say.brief));
  say("add", [&] { permits.add_permits(1); });
  say("release", [&] { permits.release(); });
  say("wait", [&] { say.served("wait", answer_of(std::move(waiter))); });
  say("available", [&] { say.served("available", permits.available_permits() == 0); });
  say("release", [&] { permits.release(3); });
  say("drain", [&] { say.served("drain", permits.drain_permits() == 3); });
  say("add", [&] { permits.add_permits(-1); });
}

void use_permits(told& say, client& own, client&, std::string const& name, event_log const& log) {
  auto const permits = own.get_permit_semaphore(name);
  say("try set", [&] { say.served("try set", permits.try_set_permits(1)); });
  say("set", [&] { permits.set_permits(2); });
  say("add", [&] { permits.add_permits(-1); });
  std::optional<std::string> id;
  say("acquire", [&] { id = permits.try_acquire(say.brief, 10s); });
  auto waiter = permits.async_try_acquire(10 * say.brief, asio::use_future);
  static_cast<void>(wait_until([&] { return log.count(event_type::waiting) > 0; }, 5 * say.brief));
  say.served("acquire", id.has_value());
  say("update", [&] { say.served("update", permits.update_lease_time(id.value_or(std::string(32, '0')), 20s)); });
  say("release", [&] { say.served("release", permits.try_release(id.value_or(std::string(32, '0')))); });
  say("wait", [&] { say.served("wait", answer_of(std::move(waiter)).has_value()); });
  say("available", [&] { say.served("available", permits.available_permits() == 0); });
  say("acquired", [&] { say.served("acquired", permits.acquired_permits() == 1); });
  // One that ran out is taken back by the next call.
  say("expired", [&] {
    permits.add_permits(1);
    if (auto const brief_one = permits.try_acquire(say.brief, 1s); brief_one)
      say.served("expired", wait_until([&] { return permits.available_permits() > 0; }, 1s + 5 * say.brief));
  });
}

void use_latch(told& say, client& own, client&, std::string const& name, event_log const&) {
  auto const latch = own.get_count_down_latch(name);
  say("set", [&] { say.served("set", latch.try_set_count(1)); });
  auto waiter = latch.async_wait_for(10 * say.brief, asio::use_future);
  say("count", [&] { say.served("count", latch.count() == 1); });
  say("down", [&] { latch.count_down(); });
  say("wait", [&] { say.served("wait", answer_of(std::move(waiter))); });
}

using use = std::function<void(told&, client&, client&, std::string const&, event_log const&)>;

template <class Getter>
use lock_by(Getter getter, bool reentrant = true) {
  return [=](told& say, client& own, client& other, std::string const& name, event_log const& log) {
    use_lock(say, (own.*getter)(name), (other.*getter)(name), reentrant, log);
  };
}

struct user_of_kind {
  std::string kind;
  use body;
};

std::vector<user_of_kind> const& users() {
  static std::vector<user_of_kind> const all{
      {"get_lock", lock_by(&client::get_lock)},
      {"get_non_reentrant_lock", lock_by(&client::get_non_reentrant_lock, false)},
      {"get_spin_lock", lock_by(&client::get_spin_lock)},
      {"get_fenced_lock", lock_by(&client::get_fenced_lock)},
      {"get_plain_lock", lock_by(&client::get_plain_lock, false)},
      {"get_fair_lock", lock_by(&client::get_fair_lock)},
      {"get_read_write_lock",
       [](told& say, client& own, client& other, std::string const& name, event_log const& log) {
         auto const mine = own.get_read_write_lock(name), theirs = other.get_read_write_lock(name);
         use_lock(say, mine.write_lock(), theirs.write_lock(), true, log);
         use_lock(say, mine.read_lock(), theirs.write_lock(), true, log);
         say("downgrade", [&] {
           lease writes = mine.write_lock().acquire({.wait = say.brief});
           lease reads = mine.read_lock().acquire({.wait = say.brief, .owner = writes.owner()});
           writes.release();
         });
       }},
      {"get_semaphore", use_semaphore},
      {"get_permit_semaphore", use_permits},
      {"get_count_down_latch", use_latch},
  };
  return all;
}

struct outcome {
  std::string errors, unserved, events;
  int overlaps = 0;
  int publish_refused = 0;
};

// As a user who has these rights alone.
outcome used_with(server& redis, std::string const& user, std::vector<std::string> rights, user_of_kind const& of,
                  milliseconds brief = 100ms) {
  std::vector<std::string> words{"ACL", "SETUSER", user, "reset", "resetchannels", "on", ">s3cret"};
  words.insert(words.end(), rights.begin(), rights.end());
  if (redis.cli(words) != "OK") throw std::runtime_error("ACL SETUSER: " + redis.cli(words));
  event_log log;
  config settings = steady_config(log);
  settings.username = user;
  settings.password = "s3cret";
  settings.client_name = "shop";
  settings.retry_attempts = 1;
  settings.retry_delay = 20ms;
  settings.close_timeout = 200ms;
  settings.seed_fencing_token = true;
  settings.local_turns = false;           // it hands off by the server
  settings.local_handoff.max_time = 10s;  // in a slow run, too
  told say{brief, {}};
  {
    client own(redis.uri(), settings);
    client other(redis.uri(), steady_config());
    of.body(say, own, other, "app:" + fresh_name(), log);
  }
  return {say.errors, say.unserved, log.words(), say.overlaps, log.count(event_type::publish_refused)};
}

// By an event or an error. Of a command that a script may not use the server does not say the name, and an error_code
// alone has no words.
bool said(outcome const& found, std::string const& right) {
  if ((right[0] == '&' || right == "+publish") && found.publish_refused > 0) return true;
  auto const all = found.errors + found.events;
  auto const has = [&](std::string_view words) { return all.find(words) != all.npos; };
  if (has("the server answered with an error") || has("can't run this command") || has("can't access")) return true;
  bool const refused = has("NOPERM") || has("permission");
  return refused && has(right[0] == '~' ? "key" : right[0] == '&' ? "channel" : right.substr(1));
}

// What is done on the way and may fail: whoever lacks it is served as the others, and is not told. The line of a fair
// lock is then left to its times, permits that ran out to the next look, an idle connection is not checked. Whether the
// release of a spin lock meets a waiter that sleeps, and hands it on, is chance.
bool unsaid(std::string const& kind, std::string const& right) {
  static std::map<std::string, std::set<std::string>> const all{
      {"get_fair_lock",
       {"+publish", "+lrange", "+lpop", "+lrem", "+zrem", "+zrange", "+zremrangebyrank", "+llen", "+zcard", "+zrank"}},
      {"get_spin_lock", {"+hdel", "+hset"}},
      {"get_semaphore", {"+persist"}},
      {"get_permit_semaphore", {"+persist", "+pexpire", "+pttl", "+zrange"}},
      {"every client", {"+ping", "+role", "+script|exists", "+unsubscribe"}},
  };
  auto const found = all.find(kind);
  return found != all.end() && found->second.contains(right);
}

}  // namespace

TEST_CASE("a user with exactly the rights of its row is served, whatever the kind", "[outside][edge-31]") {
  auto const& of = GENERATE(from_range(users()));
  server redis;
  auto const found = used_with(redis, "till", rights_of(of.kind, "app:*"), of, 5s);
  INFO(of.kind << "\n" << found.errors << found.unserved << found.events);
  CHECK(found.errors.empty());
  CHECK(found.unserved.empty());
  CHECK(found.overlaps == 0);
  CHECK(found.events.find("permission") == std::string::npos);
  CHECK(found.events.find("NOPERM") == std::string::npos);
  CHECK(found.publish_refused == 0);
}

TEST_CASE("of each right of a kind that is missing its user is told", "[outside][edge-31]") {
  auto const& of = GENERATE(from_range(users()));
  INFO(of.kind);
  server redis;
  auto const all = rights_of(of.kind, "app:*");
  auto const common = rights_of(all_rights().front().kind, {}).size();
  std::vector<std::future<outcome>> runs;
  for (std::size_t i = common; i < all.size(); ++i) {
    auto less = all;
    less.erase(less.begin() + static_cast<std::ptrdiff_t>(i));
    runs.push_back(std::async(
        std::launch::async, [&redis, &of, less, i] { return used_with(redis, "till" + std::to_string(i), less, of); }));
  }
  for (std::size_t i = common; i < all.size(); ++i) {
    auto const found = runs[i - common].get();
    INFO("without " << all[i] << "\n" << found.errors << found.events);
    CHECK(found.overlaps == 0);
    CHECK((unsaid(of.kind, all[i]) || said(found, all[i])));
  }
}

TEST_CASE("of each right of every client that is missing its user is told", "[outside][edge-31]") {
  auto const all = rights_of(users().front().kind, "app:*");
  for (std::size_t i = 0; i < rights_of(all_rights().front().kind, {}).size(); ++i) {
    auto less = all;
    less.erase(less.begin() + static_cast<std::ptrdiff_t>(i));
    server redis;  // which knows no script
    auto const found = used_with(redis, "till", less, users().front());
    INFO("without " << all[i] << "\n" << found.errors << found.events);
    CHECK(found.overlaps == 0);
    CHECK((unsaid("every client", all[i]) || said(found, all[i])));
  }
}
