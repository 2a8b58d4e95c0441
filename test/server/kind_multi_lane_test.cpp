// A blocked caller of a multi lock does its own I/O, as one of a single lock does.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/redis_server.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/use_future.hpp>

#include <future>
#include <map>
#include <string>
#include <thread>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

// A silent server ends no call in the time that these tests have.
config that_waits() {
  auto made = steady_config();
  made.timeout = 10 * patience;
  return made;
}

// Members of one server, by a client whose executor runs only while somebody asks for it.
struct lane_world {
  redis_server server{{.tcp = true}};
  asio::io_context io;
  client own{io, server.uri(), that_waits()};
  std::vector<std::string> names{"a", "b", "c"};
  distributed_lock all = own.get_multi_lock({own.get_lock("a"), own.get_lock("b"), own.get_lock("c")});
  distributed_lock single = own.get_lock("single");
  raw_redis admin = server.admin();

  lane_world() {
    running([&] {
      own.connect();
      for (int i = 0; i < 3; ++i) {
        all.lock();
        all.unlock();
      }
    });
  }
  ~lane_world() {
    server.resume();
    io.restart();
    own.async_close(asio::detached);
    io.run();
  }

  template <class Body>
  void running(Body const& body) {
    io.restart();
    auto const work = asio::make_work_guard(io);  // it may run before there is anything to do
    std::jthread runner([&](std::stop_token stop) {
      std::stop_callback const at_its_end(stop, [&] { io.stop(); });
      io.run();
    });
    body();
  }
  // A request is under way whose answer nobody has heard.
  bool asked() const {
    return wait_until([&] { return own.snapshot().nodes.front().in_flight > 0; });
  }
  std::int64_t keys() { return admin.integer("EXISTS", "a", "b", "c"); }
};

}  // namespace

TEST_CASE("multi lock: a blocked caller of a bundle does his own I/O, though nobody runs the client's executor",
          "[server][multi]") {
  lane_world w;
  for (int i = 0; i < 100; ++i) {
    REQUIRE(w.all.try_lock(patience));
    REQUIRE(w.keys() == 3);
    w.all.unlock();
    REQUIRE(w.keys() == 0);
    lease held = w.all.acquire({.wait = patience});
    REQUIRE(held.held());
    CHECK(held.release() == release_result::released);
  }
  REQUIRE(w.all.try_lock(patience));
  CHECK(w.all.try_lock(patience));  // once more, by its owner
  CHECK(w.admin.hash("b") ==
        std::map<std::string, std::string>{{w.own.id() + ":" + to_string(owner::this_thread()), "2"}});
  w.all.unlock();
  CHECK(w.keys() == 3);
  w.all.unlock();
  CHECK(w.keys() == 0);
  CHECK(w.own.snapshot().reconnects == 0);
}

TEST_CASE("multi lock: a busy bundle is told on the lane, and a lock of one member goes by it, too",
          "[server][multi]") {
  lane_world w;
  client other(w.server.uri(), steady_config());
  auto const theirs = other.get_lock("b");
  theirs.lock();
  CHECK_FALSE(w.all.try_lock());
  CHECK(w.keys() == 1);
  theirs.unlock();
  auto const one = w.own.get_multi_lock({w.own.get_lock("b")});
  REQUIRE(one.try_lock(patience));
  CHECK(w.keys() == 1);
  one.unlock();
  CHECK(w.keys() == 0);
}

TEST_CASE("multi lock: more members than a call may take go by two, one after the other", "[server][multi]") {
  lane_world w;
  std::vector<distributed_lock> many;
  for (int i = 0; i < 60; ++i) many.push_back(w.own.get_lock("n" + std::to_string(i)));
  auto const all = w.own.get_multi_lock(many);
  REQUIRE(all.try_lock(patience));
  CHECK(w.admin.integer("EXISTS", "n0", "n47", "n48", "n59") == 4);
  w.running([&] { all.unlock(); });  // the second of its calls leaves by the shared connection
  CHECK(w.admin.integer("EXISTS", "n0", "n47", "n48", "n59") == 0);
}

TEST_CASE("multi lock: a stop token ends the wait of a borrower whose server is silent", "[server][multi]") {
  lane_world w;
  w.server.pause();
  std::stop_source stop;
  auto waiter = std::async(std::launch::async, [&] { return w.all.lock(stop.get_token()); });
  CHECK(w.asked());
  stop.request_stop();
  CHECK(waiter.wait_for(patience) == std::future_status::ready);
  CHECK_FALSE(waiter.get());
  w.server.resume();
  w.running([&] {
    CHECK(wait_until([&] { return w.keys() == 0 && w.own.snapshot().in_doubt == 0; }));
    CHECK(w.all.try_lock(patience));
    w.all.unlock();
  });
}

TEST_CASE("multi lock: the end of the client ends the wait of a borrower whose server is silent", "[server][multi]") {
  lane_world w;
  w.server.pause();
  auto waiter = std::async(std::launch::async, [&] { return error_of([&] { w.all.lock(); }); });
  CHECK(w.asked());
  auto closed = w.own.async_close(asio::use_future);
  CHECK(waiter.wait_for(patience) == std::future_status::ready);
  CHECK(waiter.get() == errc::closed);
  w.server.resume();
  w.io.restart();
  w.io.run();
  closed.get();
}

TEST_CASE("multi lock: a lane that is lost under its borrower is killed, and the bundle goes again",
          "[server][multi]") {
  lane_world w;
  w.running([&] {
    for (int i = 0; i < 20; ++i) {
      w.server.pause();
      auto waiter = std::async(std::launch::async, [&] { return w.all.acquire({.wait = patience}); });
      CHECK(w.asked());
      w.admin.send({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
      w.server.resume();
      w.admin.receive();
      lease held = waiter.get();
      REQUIRE(held.held());
      CHECK(w.keys() == 3);
      CHECK(held.release() == release_result::released);
      CHECK(w.keys() == 0);
    }
  });
}

TEST_CASE("multi lock: callers of bundles and of their members share the lane", "[server][multi]") {
  lane_world w;
  int inside = 0;
  w.running([&] {
    std::vector<std::jthread> callers;
    for (int t = 0; t < 4; ++t)
      callers.emplace_back([&w, &inside, t] {
        auto const mine = t % 2 == 0 ? w.all : w.own.get_lock("b");
        for (int i = 0; i < 100; ++i) {
          mine.lock();
          ++inside;
          mine.unlock();
        }
      });
  });
  CHECK(inside == 400);
  CHECK(w.keys() == 0);
}
