// Who holds a lock, as an operator sees it, and the end of exactly that hold.
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/event_log.hpp>
#include <support/patience.hpp>

#include <boost/asio/use_future.hpp>

#include <unistd.h>

#include <algorithm>
#include <future>
#include <sstream>
#include <string>

using namespace latchkey;
using namespace latchkey::outside;
using latchkey::test::error_of;

namespace {

// The only holder of a state that has one.
holder only(lock_state const& shown) {
  REQUIRE(shown.holders.size() == 1);
  return shown.holders.front();
}

}  // namespace

TEST_CASE_METHOD(one_lock, "W1, W2: inspect says who holds a lock and from where", "[outside][inspect]") {
  lease const held = lock.acquire({.lease = 1min});
  auto const shown = second.inspect(second.get_lock(name));
  auto const who = only(shown);
  CHECK(who.client_id == ours.id());
  CHECK(who.owner == to_string(held.owner()));
  CHECK(who.count == 1);
  CHECK_FALSE(who.writes);
  REQUIRE(shown.remaining);
  CHECK(*shown.remaining <= 1min);
  CHECK(*shown.remaining > 30s);
  CHECK(shown.listeners == 0);
  CHECK(shown.line.empty());
  REQUIRE(who.from);
  CHECK(who.from->pid == ::getpid());
  CHECK_FALSE(who.from->host.empty());
  CHECK_FALSE(who.from->program.empty());
  CHECK_FALSE(who.from->address.empty());
  auto const pid = std::to_string(::getpid());
  CHECK(who.from->name == "latchkey:" + ours.id() + ':' + pid + '@' + who.from->host + ':' + who.from->program);
  auto const again = test::value_of(second.async_inspect(lock, asio::use_future));
  CHECK(only(again).owner == who.owner);
}

TEST_CASE_METHOD(one_lock, "W3: a server that can show a library shows this one and its version",
                 "[outside][inspect]") {
  lock.lock();
  lock.unlock();
  auto const shown = [&] { return shared_server().cli({"CLIENT", "LIST"}); };
  if (shown().find(" lib-name=") == std::string::npos) return;  // before Redis 7.2
  auto const all_of_ours = [&] {
    std::istringstream lines(shown());
    int named = 0, unnamed = 0;
    for (std::string line; std::getline(lines, line);)
      if (line.find(" name=latchkey:" + ours.id()) != std::string::npos)
        ++(line.find(" lib-name=latchkey lib-ver=" LATCHKEY_VERSION " ") == std::string::npos ? unnamed : named);
    return named > 0 && unnamed == 0;
  };
  CHECK(test::wait_until(all_of_ours));
}

TEST_CASE_METHOD(one_lock, "inspect shows re-entries, waiters and a free lock", "[outside][inspect]") {
  auto const nobody = second.inspect(lock);
  CHECK(nobody.holders.empty());
  CHECK_FALSE(nobody.remaining);
  lock.lock();
  lock.lock();
  test::event_log log;
  client third(shared_server().uri(), {.on_event = log.callback()});
  auto waiting = third.get_lock(name).async_acquire(asio::use_future);
  REQUIRE(log.wait_for(event_type::waiting));
  auto shown = ours.inspect(lock);
  while (shown.listeners == 0) shown = ours.inspect(lock);
  CHECK(shown.listeners == 1);
  CHECK(only(shown).count == 2);
  lock.unlock();
  lock.unlock();
  CHECK(test::value_of(std::move(waiting)).held());
}

TEST_CASE_METHOD(two_clients, "inspect shows the sides of a read-write lock", "[outside][inspect]") {
  auto const mine = ours.get_read_write_lock(name), theirs = second.get_read_write_lock(name);
  {
    lease const a = mine.read_lock().acquire(), b = theirs.read_lock().acquire();
    auto const shown = ours.inspect(theirs.write_lock());
    REQUIRE(shown.holders.size() == 2);
    CHECK(std::none_of(shown.holders.begin(), shown.holders.end(), [](auto const& one) { return one.writes; }));
  }
  lease const c = mine.write_lock().acquire();
  auto const writer = only(second.inspect(mine.read_lock()));
  CHECK(writer.writes);
  CHECK(writer.client_id == ours.id());
  CHECK(writer.owner == to_string(c.owner()));
}

TEST_CASE_METHOD(two_clients, "inspect shows the line of a fair lock, and values of others", "[outside][inspect]") {
  test::event_log log;
  client third(shared_server().uri(), {.on_event = log.callback()});
  lease held = ours.get_fair_lock(name).acquire();
  owner const next = owner::make();
  auto waiting = third.get_fair_lock(name).async_acquire({.owner = next}, asio::use_future);
  REQUIRE(log.wait_for(event_type::waiting));
  auto const shown = second.inspect(second.get_fair_lock(name));
  CHECK(shown.line == std::vector{third.id() + ':' + to_string(next)});
  CHECK(shown.listeners == 1);
  held.release();
  CHECK(test::value_of(std::move(waiting)).held());

  auto const foreign = fresh_name();
  REQUIRE(shared_server().cli({"SET", foreign, "a value", "PX", "60000"}) == "OK");
  auto const plain = ours.get_plain_lock(foreign);
  auto const stranger = only(ours.inspect(plain));
  CHECK(stranger.client_id == "a value");
  CHECK(stranger.owner.empty());
  CHECK_FALSE(stranger.from);
  CHECK(plain.force_unlock_if(stranger));
  CHECK_FALSE(shared_server().exists(foreign));
  lease const own = plain.acquire();
  CHECK(only(second.inspect(plain)).owner == to_string(own.owner()));
  CHECK(error_of([&] { return ours.inspect(ours.get_multi_lock({plain})); }) == errc::bad_argument);
}

TEST_CASE("W1: connections are called as the configuration says", "[outside][inspect]") {
  auto const name_of = [](config settings) {
    client own(shared_server().uri(), std::move(settings));
    auto const lock = own.get_lock(fresh_name());
    lease const held = lock.acquire();
    auto const from = only(own.inspect(lock)).from;
    return std::pair(from ? from->name : "", own.id());
  };
  CHECK(name_of({.announce = false}).first.empty());
  CHECK(name_of({.client_name = "till"}).first.empty());
  auto const [name, id] = name_of({.client_name = "till-{id}-{pid}-{none}"});
  CHECK(name == "till-" + id + '-' + std::to_string(::getpid()) + "-{none}");
}

TEST_CASE_METHOD(one_lock, "force_unlock_if ends this holder and no newer one", "[outside][inspect]") {
  lease first = lock.acquire();
  auto const seen = only(second.inspect(lock));
  auto waiting = second.get_lock(name).async_acquire(asio::use_future);
  auto const theirs = second.get_lock(name);
  CHECK(theirs.force_unlock_if(seen));
  lease next = test::value_of(std::move(waiting));
  CHECK(next.held());
  CHECK_FALSE(theirs.force_unlock_if(seen));
  CHECK_FALSE(lock.force_unlock_if(seen));
  CHECK(next.extend(1min));
  CHECK_FALSE(first.extend(1min));
  auto other = only(ours.inspect(lock));
  other.owner = std::to_string(std::stoll(other.owner) + 1'000);
  CHECK_FALSE(lock.force_unlock_if(other));
  CHECK(error_of([&] { return lock.force_unlock_if({}); }) == errc::bad_argument);
  CHECK(error_of([&] { return lock.force_unlock_if({.client_id = "a", .owner = "b"}); }) == errc::bad_argument);
  CHECK(error_of([&] { return ours.get_multi_lock({lock}).force_unlock_if(seen); }) == errc::bad_argument);
  CHECK(next.release() == release_result::released);
}

TEST_CASE_METHOD(two_clients, "force_unlock_if of the own client's hold is told at once", "[outside][inspect]") {
  for (auto const& lock : {ours.get_lock(fresh_name()), ours.get_fair_lock(fresh_name()),
                           ours.get_fenced_lock(fresh_name()), ours.get_spin_lock(fresh_name()),
                           ours.get_plain_lock(fresh_name()), ours.get_read_write_lock(fresh_name()).write_lock()}) {
    lease const held = lock.acquire();
    CHECK(lock.force_unlock_if(only(ours.inspect(lock))));
    CHECK_FALSE(held.held());
    CHECK_FALSE(shared_server().exists(lock.name()));
  }
}

TEST_CASE_METHOD(two_clients, "force_unlock_if of one reader leaves the others", "[outside][inspect]") {
  auto const reads = ours.get_read_write_lock(name).read_lock();
  lease const a = reads.acquire(), b = reads.acquire();
  lease c = second.get_read_write_lock(name).read_lock().acquire();
  auto const shown = ours.inspect(reads);
  auto const found = std::find_if(shown.holders.begin(), shown.holders.end(),
                                  [&](auto const& one) { return one.owner == to_string(a.owner()); });
  REQUIRE(found != shown.holders.end());
  CHECK(reads.force_unlock_if(*found));
  CHECK_FALSE(a.held());
  CHECK(b.held());
  CHECK(c.extend(1min));
  CHECK(ours.inspect(reads).holders.size() == 2);
}
