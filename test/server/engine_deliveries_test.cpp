#include <api/async_call.hpp>
#include <engine/deliveries.hpp>
#include <support/catch.hpp>
#include <support/patience.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/prefer.hpp>
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

// The way of completions to their handlers, without a client. With one: deliveries_of_turns_test.cpp.

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

// The first who compares two executors of it when it is shut stops there until it is opened.
class gate {
 public:
  void shut() { state_ = closed; }
  void open() {
    state_ = opened;
    state_.notify_all();
  }
  void pass() {
    int expected = closed;
    if (!state_.compare_exchange_strong(expected, somebody_waits)) return;
    state_.notify_all();
    state_.wait(somebody_waits);
  }
  void await() { state_.wait(closed); }

 private:
  static constexpr int opened = 0, closed = 1, somebody_waits = 2;

  std::atomic<int> state_{opened};
};

template <class Inner>
struct gated_executor {
  Inner inner;
  gate* at;

  friend bool operator==(gated_executor const& a, gated_executor const& b) noexcept {
    a.at->pass();
    return a.inner == b.inner;
  }
  template <class F>
  void execute(F&& f) const {
    inner.execute(std::forward<F>(f));
  }
  template <class Property>
  requires asio::can_query_v<Inner const&, Property>
  decltype(auto) query(Property const& property) const noexcept { return asio::query(inner, property); }
  template <class Property>
  requires asio::can_require_v<Inner const&, Property>
  auto require(Property const& property) const { return with(asio::require(inner, property)); }
  template <class Property>
  requires asio::can_prefer_v<Inner const&, Property>
  auto prefer(Property const& property) const { return with(asio::prefer(inner, property)); }
  template <class Other>
  gated_executor<Other> with(Other other) const {
    return {std::move(other), at};
  }
};

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

TEST_CASE("deliveries: a look in the child of a fork does not wait for another thread of its parent") {
  desk d;
  gate at;
  gated_executor<asio::io_context::executor_type> const where{d.io.get_executor(), &at};
  std::thread other;
  pid_t child = -1;
  d.complete_on(where, [&] {
    d.complete_on(where, [&] { d.said += 'a'; });
    at.shut();
    other = std::thread([&] { d.complete_on(where, [&] { d.said += 'b'; }); });
    at.await();  // it has the queue
    child = ::fork();
    if (child != 0) at.open();
  });
  CHECK(d.io.run_one() == 1);
  if (child == 0) {
    ::alarm(10);
    d.io.poll();  // the look
    ::_exit(d.said.empty() ? 0 : 1);
  }
  other.join();
  REQUIRE(child > 0);
  int status = -1;
  CHECK(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  d.io.run();
  CHECK(d.said == "ab");
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
