#include <support/catch.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/sweep.hpp>
#include <support/unit/topologies.hpp>
#include <wire/commands.hpp>
#include <wire/kinds.hpp>
#include <wire/scripts.hpp>

namespace machine_permits {

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// The semaphore, the permit semaphore and the latch through the machines, with every fault at every step.

namespace {

how some(std::int64_t n, std::size_t client = 0) {
  return {.client = client, .which = &detail::semaphore_kind(), .amount = n, .keeps = false};
}

how zero() { return {.which = &detail::count_down_latch_kind(), .keeps = false}; }

template <class Command>
constexpr unsigned char number(Command what) {
  return static_cast<unsigned char>(what);
}

constexpr auto release = number(detail::semaphore_command::release);
constexpr auto try_release = number(detail::permit_command::try_release);
constexpr auto count_down = number(detail::latch_command::count_down);

std::size_t taken(world& w) { return static_cast<std::size_t>(w.server.ask({"ZCARD", "{k}:timeout"}).integer); }

// A script that answers each of its items so.
std::string each(std::string const& words) {
  return "local made = {} for i = 1, #KEYS / 2 do made[i] = \"" + words + "\" end return made";
}

// Calls `then` for each as soon as it is done, in whatever order that is.
template <class Then>
void serve(world& w, std::vector<task*> waiting, Then const& then) {
  w.until([&] {
    std::erase_if(waiting, [&](task* one) {
      if (!one->done()) return false;
      then(*one);
      return true;
    });
    return waiting.empty();
  });
}

}  // namespace

TEST_CASE("semaphore: the waiters of a client are served in their order, the big request first if it came first") {
  world w;
  set_free(w, 1);
  task& big = w.run(w.acquire(1, some(3)));
  task& small = w.run(w.acquire(2, some(1)));
  CHECK_FALSE(small.done());
  w.await(w.command(release, some(1)));
  w.run();
  CHECK_FALSE(small.done());
  w.await(w.command(release, some(2)));
  w.run();
  CHECK(big.granted());
  CHECK(small.granted());
  expect_free(w, 0);
  w.finish();
}

TEST_CASE("semaphore: that there is too little for one says nothing to who wants less") {
  world w;
  set_free(w, 0);
  task& before = w.run(w.acquire(9, some(1)));
  w.await(w.command(release, some(3)));
  w.run();
  REQUIRE(before.granted());  // two are left, and the channel is kept for a while
  task& first = w.acquire(1, some(1));
  task& big = w.once(2, some(2));
  task& small = w.acquire(3, some(1));
  w.pass(1s);
  CHECK(first.granted());
  CHECK_FALSE(big.granted());
  CHECK(small.granted());
  expect_free(w, 0);
  w.finish();
}

TEST_CASE("semaphore: what a client claims is renewed every second and left alone by others") {
  world w(seen_by_the_server(), 2);
  set_free(w, 1);
  task& big = w.acquire(1, some(2));
  w.pass(5s);
  CHECK(w.server.ttl("latchkey_semaphore_claim:{k}") > 900);
  task& small = w.acquire(2, some(1, 1));
  w.pass(5s);
  CHECK_FALSE(small.done());
  w.cancel(big).run();
  CHECK(small.granted());
  CHECK(w.server.ttl("latchkey_semaphore_claim:{k}") == -2);
  w.finish();
}

TEST_CASE("semaphore: a claim goes with the last call of its client that waits") {
  world w(seen_by_the_server(), 2);
  set_free(w, 1);
  auto const claims = [&] { return w.server.ttl("latchkey_semaphore_claim:{k}") > 0; };
  task& first = w.run(w.acquire(1, some(3)));
  task& second = w.run(w.acquire(2, some(3)));
  w.cancel(first).run();
  CHECK(claims());
  w.cancel(second).run();
  CHECK_FALSE(claims());
  w.run(w.acquire(3, some(2, 1)));
  CHECK(claims());
  w.close(1).run();
  CHECK_FALSE(claims());
  w.finish();
}

TEST_CASE("semaphore: a claim goes with the last that waits, though another one made it") {
  world w(seen_by_the_server(), 2);
  set_free(w, 0);
  task& big = w.run(w.acquire(1, some(3)));
  task& small = w.run(w.acquire(2, some(1)));
  w.cancel(big).run();
  w.server.set("k", 0);
  w.cancel(small).run();
  CHECK(w.server.ttl("latchkey_semaphore_claim:{k}") == -2);
  w.finish();
}

TEST_CASE("semaphore: claims of several names go together") {
  world w;
  std::vector<std::string> const names{"k", "l", "m"};
  for (auto const& name : names) {
    w.server.set(name, 1);
    how asked = some(2);
    asked.name = name;
    w.run(w.acquire(1, asked));
  }
  w.close().run();
  for (auto const& name : names) CHECK(w.server.ttl("latchkey_semaphore_claim:{" + name + "}") == -2);
  w.finish();
}

TEST_CASE("semaphore: a claim of one more who asks is not withdrawn") {
  world w(seen_by_the_server(), 2);
  set_free(w, 1);
  task& ours = w.run(w.acquire(1, some(3)));
  task& theirs = w.run(w.acquire(2, some(3, 1)));
  w.pass(500ms);
  w.cancel(theirs).run();
  CHECK(w.server.ttl("latchkey_semaphore_claim:{k}") > 0);
  w.server.set("k", 3);
  w.server.publish("redisson_sc:{k}", "3");
  w.run();
  CHECK(ours.granted());
  w.finish();
}

TEST_CASE("semaphore: a waiter that missed its message looks again") {
  world w;
  set_free(w, 0);
  task& one = w.run(w.acquire(1, some(1)));
  w.server.set("k", 1);
  w.pass(10'001ms);
  CHECK(one.granted());
  CHECK(w.noted(event_type::no_time_to_live) == 0);
  w.finish();
}

TEST_CASE("semaphore: a caller who leaves while he is granted gives back") {
  world w;
  set_free(w, 2);
  w.await(w.command(release, some(1)));
  w.mute(role::shared);
  task& one = w.run(w.acquire(1, some(3)));
  w.cancel(one);
  w.mute(role::shared, false).run();
  CHECK(one.error);
  expect_free(w, 3);
  w.finish();
}

TEST_CASE("sweep: semaphore: callers of two clients take and give back") {
  sweep_one_server({.play =
                        [](world& w) {
                          set_free(w, 2);
                          std::vector<task*> all;
                          for (std::uint64_t i = 1; i <= 5; ++i) {
                            how one = some(i % 3 == 2 ? 2 : 1, i % 2);
                            one.direct = i == 3;
                            if (i == 4) one.wait = 8s;
                            all.push_back(&w.acquire(i, one));
                          }
                          serve(w, all, [&](task& one) {
                            w.expect(one.granted(), "everybody gets his permits");
                            if (one.granted()) w.command(release, some(one.amount, one.client));
                          });
                        },
                    .clients = 2,
                    .after = [](world& w) { expect_free(w, 2); }});
}

TEST_CASE("permit semaphore: a waiter goes on when the next lease ends") {
  world w;
  set_free(w, 1);
  task& first = granted(w, w.acquire(1, a_permit(3s)));
  task& second = w.acquire(2, a_permit());
  w.pass(3'100ms);
  CHECK(first.losses == 1);
  CHECK(second.granted());
  w.pass(600s);
  CHECK(second.trusted(w.now));
  w.finish();
  expect_free(w, 1);
}

TEST_CASE("permit semaphore: a waiter goes on when a lease that was made shorter ends") {
  world w;
  set_free(w, 1);
  how one = a_permit(9s);
  one.keeps = false;
  granted(w, w.acquire(1, one));
  task& waits = w.run(w.acquire(2, a_permit()));
  one.lease = 500ms;
  one.argument = detail::permit_semaphore_kind().field("clientA", 1, 0);
  w.await(w.command(number(detail::permit_command::update), one));
  w.pass(502ms);
  CHECK(waits.granted());
  w.finish();
}

TEST_CASE("permit semaphore: what another client has made longer is not taken from it when its own time is over") {
  world w(seen_by_the_server(), 2);
  set_free(w, 1);
  how one = a_permit(500ms);
  task& first = granted(w, w.acquire(1, one));
  one.lease = 10s;
  one.client = 1;
  one.argument = detail::permit_semaphore_kind().field("clientA", 1, 0);
  CHECK(w.await(w.command(number(detail::permit_command::update), one)).yes);
  w.pass(1s);
  CHECK(first.losses == 1);
  CHECK(taken(w) == 1);
  w.drop(first).run();
  CHECK(taken(w) == 1);
  w.pass(10s);
  task& next = granted(w, w.acquire(2, a_permit(1s)));
  w.await(w.release(next));
  w.finish();
}

TEST_CASE("permit semaphore: what was made longer when its own time was over is given back") {
  world w;
  set_free(w, 1);
  task& held = granted(w, w.acquire(1, a_permit(500ms)));
  w.mute(role::shared);
  task& longer = w.extend(held, 60s);
  w.pass(600ms);
  CHECK(held.losses == 1);
  CHECK(taken(w) == 1);
  w.mute(role::shared, false);
  w.await(longer);
  CHECK_FALSE(longer.yes);
  w.run();
  CHECK(taken(w) == 0);
  w.drop(held);
  w.finish();
}

TEST_CASE("permit semaphore: one without a lease that could not be given one does not stay") {
  world w;
  set_free(w, 1);
  task& held = granted(w, w.acquire(1, a_permit()));
  w.server.answer_with(detail::permit_extend(), each("NOPERM this user has no permissions to run this command"));
  CHECK(w.await(w.extend(held, 1s)).error);
  w.server.answer_with(detail::permit_extend(), {});
  w.pass(3s);
  CHECK(held.losses == 1);
  CHECK(taken(w) == 0);
  w.drop(held);
  w.finish();
}

TEST_CASE("permit semaphore: a waiter goes on when a permit ends that its holder made shorter") {
  world w;
  set_free(w, 1);
  task& held = granted(w, w.acquire(1, a_permit(9s)));
  task& waits = w.run(w.acquire(2, a_permit()));
  w.await(w.extend(held, 500ms));
  w.pass(600ms);
  CHECK(waits.granted());
  w.drop(held);
  w.finish();
}

TEST_CASE("permit semaphore: a longer lease that replicas do not confirm is an error, and not believed") {
  replicated r(1);
  world& w = r.w;
  set_free(w, 1);
  how one = a_permit(5s);
  task& held = granted(w, w.acquire(1, one));
  auto const until = held.shown.until();
  one.lease = 60s;
  one.argument = detail::permit_semaphore_kind().field("clientA", 1, 0);
  w.server.redis.synced_replicas = 0;
  CHECK(w.await(w.command(number(detail::permit_command::update), one)).error == errc::not_synced);
  CHECK(held.shown.until() == until);
  w.server.redis.synced_replicas = 2;
  CHECK(w.await(w.command(number(detail::permit_command::update), one)).yes);
  CHECK(held.shown.until() > until);
}

TEST_CASE("permit semaphore: a permit that its client believes to hold is on the server") {
  world w;
  set_free(w, 2);
  task& one = granted(w, w.acquire(1, a_permit(3s)));
  w.await(w.extend(one, 60s));
  w.pass(50s);
  CHECK(one.trusted(w.now));
  CHECK(taken(w) == 1);
  w.drop(one).run();
  CHECK(taken(w) == 0);
  w.finish();
  expect_free(w, 2);
}

TEST_CASE("permit semaphore: a release that is refused for a while is made up for") {
  world w;
  set_free(w, 2);
  task& kept = granted(w, w.acquire(1, a_permit()));
  task& dropped = granted(w, w.acquire(2, a_permit()));
  w.server.answer_with(detail::permit_release(), each("READONLY You can't write against a read only replica."));
  w.drop(dropped);
  task& ended = w.release(kept);
  w.until([&] { return w.server.ran("EVALSHA permit_semaphore_release") >= 3; });
  w.server.answer_with(detail::permit_release(), {});
  w.await(ended);
  CHECK(ended.released == release_result::released);
  w.run();
  CHECK(taken(w) == 0);
  expect_free(w, 2);
  w.finish();
}

TEST_CASE("permit semaphore: of a permit without a lease whose release is refused for good its client is told") {
  world w;
  set_free(w, 2);
  task& without = granted(w, w.acquire(1, a_permit()));
  task& with = granted(w, w.acquire(2, a_permit(10s)));
  w.server.answer_with(detail::permit_release(), each("NOPERM this user has no permissions to run this command"));
  CHECK(w.await(w.release(without)).error == errc::server_error);
  CHECK(w.noted(event_type::permit_lost) == 1);
  w.await(w.release(with));
  CHECK(w.noted(event_type::permit_lost) == 1);
  CHECK(w.noted(event_type::warning) == 1);
}

TEST_CASE("sweep: permit semaphore: permits are taken, given back and dropped") {
  sweep_one_server({.play =
                        [](world& w) {
                          set_free(w, 1);
                          task& a = w.acquire(1, a_permit());
                          task& b = w.acquire(2, a_permit(60s));
                          how direct = a_permit();
                          direct.direct = true;
                          task& c = w.acquire(3, direct);
                          w.await(a);
                          if (a.granted()) w.drop(a);
                          w.await(b);
                          if (b.granted()) w.await(w.release(b));
                          w.await(c);
                          if (c.granted()) w.release(c, true);
                          w.expect(a.granted() && b.granted() && c.granted(), "everybody gets one");
                        },
                    .after =
                        [](world& w) {
                          if (taken(w) != 0) w.fail("a permit is left");
                          expect_free(w, 1);
                        }});
}

TEST_CASE("sweep: permit semaphore: ids are given back by name, once") {
  sweep_one_server({.play =
                        [](world& w) {
                          set_free(w, 1);
                          for (std::uint64_t i = 1; i <= 3; ++i) {
                            how one = a_permit();
                            one.keeps = false;
                            task& id = w.await(w.acquire(i, one));
                            w.expect(id.granted(), "granted");
                            if (!id.granted()) continue;
                            one.argument = detail::permit_semaphore_kind().field("clientA", i, 0);
                            task& gone = w.await(w.command(try_release, one));
                            if (gone.error || gone.value != 1) w.fail("whoever gave it back is told so");
                          }
                        },
                    .after =
                        [](world& w) {
                          if (taken(w) != 0) w.fail("a permit is left");
                          expect_free(w, 1);
                        }});
}

TEST_CASE("sweep: latch: waiters go on at zero, and every count is counted once") {
  sweep_one_server({.play =
                        [](world& w) {
                          w.exclusive = false;
                          w.server.set("k", 3);
                          std::vector<task*> all;
                          for (std::uint64_t i = 1; i <= 4; ++i) {
                            how one = zero();
                            one.direct = i == 2;
                            all.push_back(&w.acquire(i, one));
                          }
                          w.run();
                          for (int i = 0; i < 2; ++i) w.await(w.command(count_down, zero()));
                          if (w.server.number("k") != 1) w.fail("a count was lost, or counted twice");
                          for (task* one : all)
                            if (one->granted()) w.fail("not yet zero");
                          w.await(w.command(count_down, zero()));
                          for (task* one : all) {
                            w.await(*one);
                            w.expect(one->granted(), "zero");
                          }
                        },
                    .after =
                        [](world& w) {
                          if (w.server.exists("k")) w.fail("the count is left");
                        }});
}

}  // namespace machine_permits
