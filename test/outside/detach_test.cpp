// Holds that go from one process to another.
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/child_process.hpp>
#include <support/configs.hpp>
#include <support/errors.hpp>
#include <support/event_log.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <future>
#include <string>
#include <utility>

using namespace latchkey;
using namespace latchkey::outside;
using latchkey::test::child_process;
using latchkey::test::error_of;
using latchkey::test::value_of;

namespace {

distributed_lock lock_of(client const& from, int kind, std::string const& name) {
  switch (kind) {
    case 0: return from.get_lock(name);
    case 1: return from.get_fair_lock(name);
    case 2: return from.get_fenced_lock(name);
    case 3: return from.get_spin_lock(name);
    case 4: return from.get_plain_lock(name);
    case 5: return from.get_non_reentrant_lock(name);
    case 6: return from.get_read_write_lock(name).read_lock();
    default: return from.get_read_write_lock(name).write_lock();
  }
}

}  // namespace

TEST_CASE_METHOD(two_clients, "a detached hold stays, and is adopted by another client, of every kind",
                 "[outside][detach]") {
  int const kind = GENERATE(range(0, 8));
  CAPTURE(kind);
  auto const lock = lock_of(ours, kind, name);
  lease held = lock.acquire({.lease = 1min});
  auto const fence = held.fencing_token();
  CHECK((kind == 2) == fence.has_value());
  auto const token = held.detach();
  CHECK(token.starts_with("lk1."));
  CHECK_FALSE(held);
  CHECK_FALSE(held.held());
  CHECK(held.detach().empty());
  CHECK(held.release() == release_result::expired);
  auto const theirs = lock_of(second, kind, name);
  CHECK(theirs.is_locked());
  lease mine = second.adopt(token);
  REQUIRE(mine);
  CHECK(mine.held());
  CHECK(mine.name() == name);
  CHECK(mine.fencing_token() == fence);
  CHECK(mine.remaining() <= 1min);
  CHECK(mine.remaining() > 30s);
  CHECK(theirs.is_held_by(mine.owner()));
  CHECK(mine.extend(5min));
  CHECK(mine.remaining() > 4min);
  CHECK(shared_server().pttl(name) > 4min);
  CHECK(mine.release() == release_result::released);
  CHECK_FALSE(theirs.is_locked());
  CHECK_FALSE(second.adopt(token));
}

TEST_CASE_METHOD(one_lock, "of a hold that is over there is no token, and its lease is empty", "[outside][detach]") {
  lease held = lock.acquire({.lease = test::brief_lease});
  std::promise<void> told;
  held.on_lost([&](error_code const&) { told.set_value(); });
  REQUIRE(told.get_future().wait_for(10s) == std::future_status::ready);
  CHECK(held.detach().empty());
  CHECK_FALSE(held);
  lease next = lock.acquire({.wait = 10s, .lease = 1min});
  CHECK_FALSE(next.detach().empty());
}

TEST_CASE("another process adopts a hold with its token", "[outside][detach]") {
  auto const uri = shared_server().uri();
  child_process child([&](child_process::channel& parent) {
    client own(uri);
    lease taken = own.adopt(parent.hear());
    return taken.held() && taken.extend(2min) && taken.release() == release_result::released ? 0 : 1;
  });
  client ours(uri);
  auto const name = fresh_name();
  auto const token = ours.get_lock(name).acquire({.lease = 1min}).detach();
  child.talk().say(token);
  CHECK(child.wait() == 0);
  CHECK_FALSE(shared_server().exists(name));
  CHECK_FALSE(ours.adopt(token));
}

TEST_CASE_METHOD(one_lock, "a hold is adopted asynchronously, on the caller's executor", "[outside][detach]") {
  auto const token = lock.acquire({.lease = 1min}).detach();
  asio::io_context io;
  client on_callers(io, shared_server().uri());
  bool done = false;
  on_callers.async_adopt(token, [&](error_code error, lease taken) {
    CHECK_FALSE(error);
    CHECK(taken.held());
    CHECK(io.get_executor().running_in_this_thread());
    CHECK_FALSE(taken.detach().empty());  // also on a thread that may not block
    done = true;
    on_callers.close();
  });
  io.run();
  CHECK(done);
  lease taken = value_of(second.async_adopt(token, asio::use_future));
  CHECK(taken.release() == release_result::released);
  CHECK_FALSE(value_of(second.async_adopt(token, asio::use_future)));
  CHECK(test::error_in(second.async_adopt("lk1.nothing", asio::use_future)) == errc::bad_argument);
}

TEST_CASE_METHOD(one_lock, "what is no token of a hold, or one of several locks, is told", "[outside][detach]") {
  for (auto const* const text : {"", "lk1.", "lk1.e30", "lk1.!!", "token",
                                 // {"name":"n","kind":"semaphore","owner":"id:1"}
                                 "lk1.eyJuYW1lIjoibiIsImtpbmQiOiJzZW1hcGhvcmUiLCJvd25lciI6ImlkOjEifQ"}) {
    CAPTURE(text);
    CHECK(error_of([&] { static_cast<void>(ours.adopt(text)); }) == errc::bad_argument);
  }
  auto const both = ours.get_multi_lock({lock, ours.get_lock(name + ":2")});
  lease joint = both.acquire();
  CHECK(error_of([&] { static_cast<void>(joint.detach()); }) == errc::bad_argument);
  CHECK(joint.held());
  lease outer = second.get_lock(name + ":3").acquire();
  lease inner = second.get_lock(name + ":3").acquire({.owner = outer.owner()});
  CHECK(error_of([&] { static_cast<void>(inner.detach()); }) == errc::bad_argument);
  CHECK(inner.held());
  CHECK(inner.release() == release_result::still_held);
  auto const token = outer.detach();
  lease again = second.adopt(token);
  CHECK(again.held());
  CHECK(error_of([&] { static_cast<void>(second.adopt(token)); }) == errc::already_held);
}

TEST_CASE_METHOD(two_clients, "a waiter gets what another process has adopted and released", "[outside][detach]") {
  auto const lock = ours.get_lock(name);
  lease held = lock.acquire({.lease = 1min});
  auto waiting = lock.async_acquire(asio::use_future);
  auto const token = held.detach();
  lease taken = second.adopt(token);
  REQUIRE(taken.held());
  CHECK(waiting.wait_for(0s) == std::future_status::timeout);
  CHECK(taken.release() == release_result::released);
  CHECK(value_of(std::move(waiting)).held());
}

TEST_CASE("a client has the UUID that it is given", "[outside][detach]") {
  config settings;
  settings.client_id = "6c6b6579-0123-4567-89ab-0123456789ab";
  client const named(shared_server().uri(), settings);
  CHECK(named.id() == settings.client_id);
  auto const name = fresh_name();
  lease const held = named.get_lock(name).acquire();
  CHECK(shared_server().hash(name).begin()->first == settings.client_id + ':' + to_string(held.owner()));
  for (auto const* const wrong :
       {"6c6b6579", "6C6B6579-0123-4567-89AB-0123456789AB", "6c6b6579:0123-4567-89ab-0123456789ab"}) {
    settings.client_id = wrong;
    CHECK(error_of([&] { client(shared_server().uri(), settings); }) == errc::bad_argument);
  }
}

TEST_CASE_METHOD(two_clients, "a name of any bytes, as long as it may be, goes by a token", "[outside][detach]") {
  for (auto const& odd : {std::string(64 * 1'024, '\1'), std::string(64 * 1'024, '"'), std::string("\xff\0{}\\", 5)}) {
    CAPTURE(odd.size());
    lease held = ours.get_lock(odd).acquire({.lease = 1min});
    auto const token = held.detach();
    lease mine = second.adopt(token);
    REQUIRE(mine);
    CHECK(mine.name() == odd);
    CHECK(mine.release() == release_result::released);
  }
}

TEST_CASE("an adopted hold is counted as one that began, and told", "[outside][detach]") {
  test::event_log seen;
  client const first(shared_server().uri()), second(shared_server().uri(), {.on_event = seen.callback()});
  auto const lock = first.get_lock(fresh_name());
  for (bool const lost : {false, true}) {
    lease mine = second.adopt(lock.acquire({.lease = 1min}).detach());
    REQUIRE(mine);
    CHECK(seen.wait_for(event_type::granted, lost ? 2 : 1));
    if (lost) {
      CHECK(lock.force_unlock());
      CHECK_FALSE(mine.extend(1min));
    }
    static_cast<void>(mine.release());
  }
  auto const counted = second.snapshot();
  CHECK(counted.acquired == 2);
  CHECK(counted.released == 1);
  CHECK(counted.lost == 1);
  CHECK(counted.held == 0);
  REQUIRE(counted.kinds.size() == 1);
  CHECK(counted.kinds.front().acquired == 2);
}
