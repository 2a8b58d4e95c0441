// Blocking calls on a thread that serves the client are refused at once, instead of waiting for themselves.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/run_coro.hpp>
#include <support/worlds.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <future>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

// The answers of all blocking members.
std::vector<error_code> ask_all(distributed_lock const& lock, lease& held) {
  return {error_of([&] { lock.lock(); }),
          error_of([&] { lock.lock(5s); }),
          error_of([&] { return lock.try_lock(); }),
          error_of([&] { return lock.try_lock(1s, 5s); }),
          error_of([&] { return lock.acquire(); }),
          error_of([&] { lock.unlock(); }),
          error_of([&] { return lock.force_unlock(); }),
          error_of([&] { return lock.is_locked(); }),
          error_of([&] { return lock.is_held_by_current_thread(); }),
          error_of([&] { return lock.hold_count(); }),
          error_of([&] { return lock.remaining_time_to_live(); }),
          error_of([&] { return held.extend(5s); }),
          error_of([&] { return held.release(); })};
}

void check_refused(std::vector<error_code> const& answers) {
  for (auto const& answer : answers) CHECK(answer == errc::would_deadlock);
}

template <class Executor>
std::vector<error_code> ask_on(Executor const& executor, client const& own) {
  auto const lock = own.get_lock(new_name());
  lease held = lock.async_acquire(asio::use_future).get();
  std::promise<std::vector<error_code>> answers;
  asio::post(executor, [&] { answers.set_value(ask_all(lock, held)); });
  return answers.get_future().get();
}

}  // namespace

TEST_CASE("blocking calls on the client's io_context would deadlock, on however many threads", "[server][contract]") {
  for (int threads : {1, 3}) {
    running_context context(threads);
    client own(context.get(), common_server().uri(), steady_config());
    check_refused(ask_on(context.get().get_executor(), own));
    own.close();
  }
}

TEST_CASE("blocking calls on the client's thread pool or strand would deadlock", "[server][contract]") {
  asio::thread_pool pool(2);
  client on_pool(pool, common_server().uri(), steady_config());
  check_refused(ask_on(pool.get_executor(), on_pool));
  auto const strand = asio::make_strand(pool);
  client on_strand(asio::any_io_executor(strand), common_server().uri(), steady_config());
  check_refused(ask_on(strand, on_strand));
  on_pool.close();
  on_strand.close();
}

TEST_CASE("blocking calls in a handler on the client's own thread would deadlock", "[server][contract]") {
  common_world w;
  lease held = w.lock.acquire();
  std::promise<std::vector<error_code>> answers;
  w.lock.async_is_locked([&](error_code, bool) { answers.set_value(ask_all(w.lock, held)); });
  auto result = answers.get_future();
  REQUIRE(result.wait_for(patience) == std::future_status::ready);
  check_refused(result.get());
}

TEST_CASE("blocking calls in on_lost would deadlock", "[server][contract]") {
  common_world w;
  auto const busy = w.own.get_lock(new_name());
  lease held = busy.acquire();
  lease brief = w.lock.acquire({.lease = brief_lease});
  std::promise<std::vector<error_code>> answers;
  brief.on_lost([&] { answers.set_value(ask_all(w.lock, held)); });
  auto result = answers.get_future();
  REQUIRE(result.wait_for(patience) == std::future_status::ready);
  check_refused(result.get());
}

TEST_CASE("a refused release goes on in the background", "[server][contract]") {
  common_world w;
  lease held = w.lock.acquire();
  std::promise<error_code> answer;
  w.lock.async_is_locked([&](error_code, bool) { answer.set_value(error_of([&] { return held.release(); })); });
  CHECK(answer.get_future().get() == errc::would_deadlock);
  CHECK(wait_until([&] { return !w.lock.is_locked(); }));
}

TEST_CASE("blocking calls of one client in a handler of another are fine", "[server][contract]") {
  common_world w;
  client other(common_server().uri(), steady_config());
  std::promise<bool> answer;
  w.lock.async_is_locked([&](error_code, bool) { answer.set_value(other.get_lock(new_name()).try_lock()); });
  auto result = answer.get_future();
  REQUIRE(result.wait_for(patience) == std::future_status::ready);
  CHECK(result.get());
}
