#include <api/async_call.hpp>
#include <engine/deliveries.hpp>
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/configs.hpp>
#include <support/patience.hpp>
#include <support/redis_server.hpp>
#include <support/run_coro.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace latchkey;
using namespace latchkey::detail;
using namespace latchkey::test;

// The way of completions to their handlers: without a client as far as that goes, and with the turns of one.

namespace {

struct desk;

// A call whose handler is a function.
struct desk_call final : handled_call {
  desk_call(desk& from, handler_place at, std::function<void()> does)
      : of(from), where(std::move(at)), handler(std::move(does)) {}
  handler_place const* place() const noexcept override { return &where; }
  void complete() noexcept override;
  void call_handler() override {
    std::unique_ptr<desk_call> const self(this);
    handler();
  }
  void forget() noexcept override;

  desk& of;
  handler_place where;
  std::function<void()> handler;
};

struct desk {
  asio::io_context io;
  std::shared_ptr<deliveries> all = std::make_shared<deliveries>();
  std::string said;
  int forgotten = 0;

  void complete(std::function<void()> handler) { complete_on(io.get_executor(), std::move(handler)); }
  void complete_on(asio::any_io_executor where, std::function<void()> handler) {
    complete_at({tracked(std::move(where)), {}}, std::move(handler));
  }
  // Of a handler that is bound to an executor of the user's.
  void complete_bound(asio::any_io_executor where, std::function<void()> handler) {
    complete_at({tracked(io.get_executor()), tracked(std::move(where))}, std::move(handler));
  }
  void complete_at(handler_place at, std::function<void()> handler) {
    (new desk_call(*this, std::move(at), std::move(handler)))->complete();
  }
  static asio::any_io_executor tracked(asio::any_io_executor where) {
    return asio::prefer(std::move(where), asio::execution::outstanding_work.tracked);
  }
  void say(char what) {
    complete([this, what] { said += what; });
  }
  // A handler that completes another one, so many times.
  void chain(int count, int& ran) {
    complete([this, count, &ran] {
      ++ran;
      if (count > 1) chain(count - 1, ran);
    });
  }
};

void desk_call::complete() noexcept {
  if (of.all->keep(*this)) return;
  of.all->posted();
  auto const at = where;
  at.post([this] {
    of.all->arrived();
    of.all->run(*this);
  });
}

void desk_call::forget() noexcept {
  ++of.forgotten;
  delete this;
}

constexpr int row = 1 + deliveries::most_in_a_row;

}  // namespace

TEST_CASE("deliveries: what a handler completes follows it, in order, and never inside it") {
  desk d;
  d.complete([&] {
    for (char const what : {'a', 'b', 'c'}) d.say(what);
    CHECK(d.said.empty());
  });
  CHECK(d.said.empty());
  CHECK(d.io.run_one() == 1);
  CHECK(d.said == "abc");
  d.io.run();
  CHECK(d.said == "abc");
  CHECK(d.all->empty());
}

TEST_CASE("deliveries: what was posted earlier comes earlier") {
  desk d;
  d.complete([&] {
    d.said += '1';
    d.say('3');
  });
  d.say('2');
  d.io.run();
  CHECK(d.said == "123");
}

TEST_CASE("deliveries: a handler is followed by so many, and then by what else the executor has to run") {
  desk d;
  int ran = 0;
  d.chain(100, ran);
  bool other = false;
  d.complete_on(d.io.get_executor(), [&] { asio::post(d.io, [&] { other = true; }); });
  while (!other) d.io.run_one();
  CHECK(ran <= 2 * row);
  d.io.run();
  CHECK(ran == 100);
}

TEST_CASE("deliveries: a stopped executor runs the row to its end, and the rest when it goes on") {
  desk d;
  int ran = 0;
  d.complete([&] {
    d.io.stop();
    for (int i = 0; i < 40; ++i) d.complete([&] { ++ran; });
  });
  d.io.run();
  CHECK(ran == deliveries::most_in_a_row);
  d.io.restart();
  d.io.run();
  CHECK(ran == 40);
}

TEST_CASE("deliveries: a handler that runs the executor itself is given what it has completed") {
  desk d;
  bool seen = false;
  d.complete([&] {
    d.say('a');
    d.say('b');
    while (d.said != "ab") REQUIRE(d.io.run_one() == 1);
    d.complete([&] {
      d.say('d');
      while (d.said != "abd") REQUIRE(d.io.poll() > 0);
      seen = true;
    });
  });
  d.io.run();
  CHECK(seen);
  CHECK(d.said == "abd");
}

TEST_CASE("deliveries: after a handler that throws the others are called") {
  desk d;
  d.complete([&] {
    d.say('a');
    d.complete([] { throw std::runtime_error("in the row"); });
    d.say('b');
    throw std::runtime_error("the first");
  });
  CHECK_THROWS_WITH(d.io.run(), "the first");
  CHECK_THROWS_WITH(d.io.run(), "in the row");
  d.io.run();
  CHECK(d.said == "ab");
}

TEST_CASE("deliveries: a handler may wait for another one on a second thread") {
  desk d;
  asio::thread_pool pool(2);
  std::promise<void> done;
  d.complete_on(pool.get_executor(), [&] {
    std::promise<void> inner;
    d.complete_on(pool.get_executor(), [&] { inner.set_value(); });
    CHECK(inner.get_future().wait_for(patience) == std::future_status::ready);
    done.set_value();
  });
  CHECK(done.get_future().wait_for(patience) == std::future_status::ready);
  pool.join();
}

TEST_CASE("deliveries: a strand runs one at a time, in order, whoever completes") {
  desk d;
  asio::thread_pool pool(3);
  auto const strand = asio::make_strand(pool.get_executor());
  std::atomic<int> inside{0}, worst{0}, ran{0};
  std::vector<int> seen;  // guarded by the strand
  std::function<void(int)> const step = [&](int left) {
    if (++inside != 1) worst = 2;
    if (left % 2 == 0) std::this_thread::yield();
    ++ran;
    // Two for each until there are enough: rows overflow again and again.
    for (int const next : {left - 1, left - 2})
      if (next > 0) d.complete_on(strand, [&step, next] { step(next); });
    if (left == 1) {
      for (int i = 0; i < 50; ++i) d.complete_on(strand, [&seen, i] { seen.push_back(i); });
    }
    --inside;
  };
  for (int i = 0; i < 4; ++i) d.complete_on(strand, [&] { step(12); });
  pool.join();
  CHECK(worst == 0);
  CHECK(d.all->empty());
  REQUIRE(seen.size() % 50 == 0);
  CHECK(!seen.empty());
}

TEST_CASE("deliveries: another executor's handler is posted there") {
  desk d;
  asio::io_context other;
  auto const on_other = [&](std::string text) { d.complete_on(other.get_executor(), [&d, text] { d.said += text; }); };
  d.complete([&] {
    on_other("x");
    d.say('a');
    on_other("y");
  });
  d.io.run();
  CHECK((d.said.empty() || d.said == "a"));
  other.run();
  d.io.restart();
  d.io.run();
  CHECK(d.said.find('a') != std::string::npos);
  CHECK(d.said.find('x') < d.said.find('y'));
}

TEST_CASE("deliveries: an executor that drops its functions drops the rest of the queue") {
  desk d;
  std::optional<asio::io_context> io(std::in_place);
  int ran = 0;
  d.complete_on(io->get_executor(), [&] {
    io->stop();
    for (int i = 0; i < 40; ++i) d.complete_on(io->get_executor(), [&] { ++ran; });
  });
  io->run();
  CHECK(ran == deliveries::most_in_a_row);
  io.reset();
  CHECK(d.forgotten == 40 - ran);
  CHECK(d.all->empty());
  d.say('a');  // others are not held up by that
  d.io.run();
  CHECK(d.said == "a");
}

TEST_CASE("deliveries: nothing is left on the way to an executor whose handlers were called") {
  desk d;
  std::optional<asio::io_context> own(std::in_place);
  bool called = false;
  d.complete_bound(own->get_executor(), [&] {
    d.complete_bound(own->get_executor(), [&] {
      called = true;
      own->stop();
    });
  });
  CHECK(d.io.run_one() == 1);
  own->run();
  CHECK(called);
  d.io.restart();
  CHECK(d.io.poll() == 0);
  own.reset();
  CHECK(d.all->empty());
}

TEST_CASE("deliveries: an executor ends with its handlers, whatever the client's executor does") {
  desk d;
  asio::thread_pool pool(1);
  std::promise<void> second;
  d.complete_bound(pool.get_executor(), [&] { d.complete_bound(pool.get_executor(), [&] { second.set_value(); }); });
  CHECK(d.io.run_one() == 1);
  REQUIRE(second.get_future().wait_for(patience) == std::future_status::ready);
  auto const joined = std::async(std::launch::async, [&] { pool.join(); });
  CHECK(joined.wait_for(patience) == std::future_status::ready);
  d.io.restart();
  d.io.run();  // so that it ends in any case
}

TEST_CASE("deliveries: the child of a fork in a handler leaves its parent's queue alone") {
  desk d;
  pid_t child = -1;
  d.complete([&] {
    d.say('a');
    child = ::fork();
  });
  CHECK(d.io.run_one() == 1);
  if (child == 0) {
    d.io.poll();  // the look
    ::_exit(d.said.empty() ? 0 : 1);
  }
  REQUIRE(child > 0);
  CHECK(d.said == "a");
  int status = -1;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

#ifndef LATCHKEY_TEST_SANITIZED
TEST_CASE("deliveries: memory of calls that come no more makes room for that of others") {
  std::thread([] {
    for (std::size_t const old : {1'000U, 2'000U}) give_call_memory(::operator new(old), old);
    constexpr std::size_t size = 3'000;
    void* const block = take_call_memory(size);
    give_call_memory(block, size);
    void* const other = ::operator new(size);  // takes the place of `block` if that was freed
    void* const again = take_call_memory(size);
    CHECK(again == block);
    ::operator delete(other);
    ::operator delete(again);
  }).join();
}
#endif

// With the turns of a client, which complete at once.

namespace {

struct asking_handler {
  std::function<void()> does;
  void operator()(error_code) const { does(); }
};

}  // namespace

template <class Candidate>
struct boost::asio::associated_executor<asking_handler, Candidate> {
  using type = Candidate;
  static type get(asking_handler const&, Candidate const& offered = {}) noexcept {
    return asio::prefer(offered, asio::execution::relationship.fork);
  }
};

namespace {

struct turning {
  redis_server server;
  asio::io_context io{1};
  std::optional<client> own{std::in_place, io, server.uri(), [] {
                              auto made = steady_config();
                              made.local_turns = true;
                              return made;
                            }()};
  distributed_lock lock = own->get_lock("k");
  owner const me = owner::make();
  std::vector<int> seen;

  void take() {
    bool held = false;
    lock.async_lock(me, [&](error_code failed) { held = !failed; });
    REQUIRE(run_until(io, [&] { return held; }));
    io.restart();
  }
};

}  // namespace

TEST_CASE("deliveries: the end of a client does not overtake handlers of calls that ended earlier") {
  turning t;
  t.take();
  bool inline_call = false, inside = false;
  asio::post(t.io, [&] {
    t.lock.async_lock(t.me, [&](error_code) {
      inside = true;
      for (int i = 0; i < 50; ++i)
        t.lock.async_lock(t.me, [&, i](error_code failed) {
          inline_call |= inside;
          CHECK_FALSE(failed);
          t.seen.push_back(i);
        });
      lease().async_release([](error_code, release_result) {});
      t.own->async_close([&](error_code) { t.seen.push_back(-1); });
      inside = false;
    });
  });
  t.io.run();
  CHECK_FALSE(inline_call);
  REQUIRE(t.seen.size() == 51);
  for (int i = 0; i < 50; ++i) CHECK(t.seen[static_cast<std::size_t>(i)] == i);
  CHECK(t.seen.back() == -1);
}

TEST_CASE("deliveries: a client may go in a handler, and those behind it are called") {
  turning t;
  t.take();
  t.lock.async_lock(t.me, [&](error_code) {
    for (int i = 0; i < 20; ++i) t.lock.async_lock(t.me, [&](error_code) { t.seen.push_back(1); });
    t.lock.async_lock(t.me, [&](error_code) { t.own.reset(); });
    for (int i = 0; i < 20; ++i) t.lock.async_lock(t.me, [&](error_code) { t.seen.push_back(2); });
  });
  t.io.run();
  CHECK(t.seen.size() == 40);
}

TEST_CASE("deliveries: a slot reaches no call that is over, and each handler runs where it belongs") {
  turning t;
  t.take();
  asio::thread_pool pool(2);
  auto const strand = asio::make_strand(pool.get_executor());
  std::atomic<int> elsewhere{0}, astray{0};
  std::vector<std::unique_ptr<asio::cancellation_signal>> signals;
  t.lock.async_lock(t.me, [&](error_code) {
    for (int i = 0; i < 30; ++i) {
      auto& signal = *signals.emplace_back(std::make_unique<asio::cancellation_signal>());
      t.lock.async_lock(t.me, asio::bind_cancellation_slot(signal.slot(), [&](error_code failed) {
                          CHECK_FALSE(failed);
                          t.seen.push_back(1);
                        }));
      t.lock.async_lock(t.me, asio::bind_executor(strand, [&](error_code failed) {
                          if (failed || !strand.running_in_this_thread()) ++astray;
                          ++elsewhere;
                        }));
    }
    for (auto& one : signals) one->emit(asio::cancellation_type::terminal);
  });
  REQUIRE(run_until(t.io, [&] { return t.seen.size() == 30 && elsewhere == 30; }));
  CHECK(astray == 0);
  t.own->close();
  t.io.restart();
  t.io.run();
  pool.join();
}

TEST_CASE("deliveries: an answer that is read meanwhile does not overtake the rest of a queue") {
  turning t;
  t.take();
  auto const before = t.own->snapshot().commands;
  t.server.pause();
  t.own->get_lock("other").async_is_locked([&](error_code, bool) { t.seen.push_back(-1); });
  REQUIRE(run_until(t.io, [&] { return t.own->snapshot().commands > before; }));
  t.io.restart();
  t.lock.async_lock(t.me, [&](error_code) {
    t.server.resume();
    t.server.admin().ok("PING");  // it answers one after the other
    for (int i = 0; i < 40; ++i) t.lock.async_lock(t.me, [&, i](error_code) { t.seen.push_back(i); });
  });
  REQUIRE(run_until(t.io, [&] { return t.seen.size() == 41; }));
  for (int i = 0; i < 40; ++i) CHECK(t.seen[static_cast<std::size_t>(i)] == i);
  t.own->close();
  t.io.restart();
  t.io.run();
}

TEST_CASE("deliveries: an answer that is read does not overtake what was posted before") {
  turning t;
  t.take();
  auto const before = t.own->snapshot().commands;
  t.server.pause();
  t.own->get_lock("other").async_is_locked([&](error_code, bool) { t.seen.push_back(2); });
  REQUIRE(run_until(t.io, [&] { return t.own->snapshot().commands > before; }));
  t.io.restart();
  asio::post(t.io, [&] {
    t.server.resume();
    t.server.admin().ok("PING");  // it answers one after the other
    // The context looks at its sockets before this runs, and runs what it finds there behind it.
    asio::post(t.io, [&] { t.lock.async_lock(t.me, [&](error_code) { t.seen.push_back(1); }); });
  });
  REQUIRE(run_until(t.io, [&] { return t.seen.size() == 2; }));
  CHECK(t.seen == std::vector<int>{1, 2});
  t.own->close();
  t.io.restart();
  t.io.run();
}

TEST_CASE("deliveries: an erased handler is called in its order") {
  turning t;
  t.take();
  using erased = asio::any_completion_handler<void(error_code)>;
  auto const note = [&](int what) { return [&t, what](error_code) { t.seen.push_back(what); }; };
  t.lock.async_lock(t.me, [&](error_code) {
    t.lock.async_lock(t.me, note(1));
    t.lock.async_lock(t.me, erased(note(2)));
    t.lock.async_lock(t.me, erased(asio::bind_executor(t.io.get_executor(), note(3))));
    t.lock.async_lock(t.me, note(4));
    t.own->async_close(erased(note(5)));
  });
  t.io.run();
  CHECK(t.seen == std::vector<int>{1, 2, 3, 4, 5});
}

TEST_CASE("deliveries: an adapter that asks the executor it is offered is offered one") {
  turning t;
  t.take();
  t.lock.async_lock(t.me, asking_handler{[&] { t.seen.push_back(1); }});
  t.lock.async_lock(t.me, [&](error_code) { t.seen.push_back(2); });
  t.own->async_close([&](error_code) { t.seen.push_back(3); });
  t.io.run();
  CHECK(t.seen == std::vector<int>{1, 2, 3});
}

TEST_CASE("deliveries: with threads of the client's own each handler runs where it belongs") {
  redis_server const server;
  auto settings = steady_config();
  settings.local_turns = true;
  client own(server.uri(), settings);
  auto const lock = own.get_lock("k");
  auto const me = owner::make();
  asio::io_context io;
  int astray = 0;
  auto const play = [&]() -> asio::awaitable<void> {
    for (int i = 0; i < 100; ++i) {
      co_await lock.async_lock(me);
      if (!io.get_executor().running_in_this_thread()) ++astray;
    }
    for (int i = 0; i < 100; ++i) {
      co_await lock.async_unlock(me);
      if (!io.get_executor().running_in_this_thread()) ++astray;
    }
  };
  run_coro(io, play());
  CHECK(astray == 0);
  // And those that have no executor, on the thread for callbacks.
  std::promise<std::thread::id> done;
  std::vector<std::thread::id> where;
  lock.async_lock(me, [&](error_code) {
    for (int i = 0; i < 40; ++i) lock.async_lock(me, [&](error_code) { where.push_back(std::this_thread::get_id()); });
    lock.async_lock(me, [&](error_code) { done.set_value(std::this_thread::get_id()); });
  });
  auto told = done.get_future();
  REQUIRE(told.wait_for(patience) == std::future_status::ready);
  CHECK(where == std::vector<std::thread::id>(40, told.get()));
}
