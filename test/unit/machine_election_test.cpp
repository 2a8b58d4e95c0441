// Calls without a wait while a master is gone and the next one is not elected yet, in virtual time.
#include <support/catch.hpp>
#include <support/unit/topologies.hpp>

#include <vector>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

constexpr char const* refused = "Connection refused";

config settings() {
  config made = impatient();
  made.close_timeout = 20s;  // releases are waited for as long as the others
  return made;
}

// A client that is connected, and whose master can die.
struct election {
  explicit election(world::known how) : w(settings(), 1, how), next(w.add_server()), by_sentinel(how == by_one) {
    w.resolve_to(w.server);
    if (!by_sentinel) nodes::move(w, "other", 1);  // the other node is a master, too, and can be asked
    held = &w.await(w.acquire(1));
    fixed = &w.await(w.acquire(2, {.name = "fixed", .lease = 60s}));
    w.await(w.release(w.await(w.acquire(3, {.name = "other"}))));
    w.pass(1s);
  }
  void die() {
    w.only_host = "node0";
    w.unreachable = refused;
    next.redis.data = w.server.redis.data;
    w.server.restart(true);
  }
  void elect() {
    if (by_sentinel)
      sentinels::promote(w, next);
    else
      nodes::take_over(w, 0, 1, true);
  }
  // One of each that has no wait, but for a release.
  std::vector<task*> begin(bool direct = false) {
    return {&w.once(4, {.name = "free", .direct = direct}), &w.extend(*fixed, 50s, direct),
            &w.ask(detail::query::is_locked, 0, {.direct = direct}), &w.release(*held, direct)};
  }
  static constexpr auto by_one = world::known::by_sentinel;

  world w;
  stepped_server& next;
  bool const by_sentinel;
  task* held = nullptr;
  task* fixed = nullptr;
};

constexpr world::known each_way[] = {world::known::by_sentinel, world::known::by_nodes};

}  // namespace

TEST_CASE("election: calls without a wait outlast it", "[unit][machine][cluster]") {
  for (auto const how : each_way) {
    election e(how);
    INFO((e.by_sentinel ? "sentinels" : "a cluster"));
    e.die();
    auto const calls = e.begin();
    e.w.pass(5s);
    for (task* const one : calls) CHECK_FALSE(one->done());
    e.elect();
    for (task* const one : calls) {
      e.w.await(*one);
      INFO(one->label << ": " << one->error.message() << ", " << one->text);
      CHECK_FALSE(one->error);
    }
    CHECK(calls[0]->granted());
    CHECK(calls[1]->yes);
    CHECK(calls[3]->released == release_result::released);
    CHECK(e.next.exists("free"));
    CHECK(e.next.exists("fixed"));
    CHECK_FALSE(e.next.exists("k"));
  }
}

TEST_CASE("election: where there is none, calls without a wait end when their attempts had the time of answers",
          "[unit][machine][cluster]") {
  for (auto const how : each_way) {
    election e(how);
    INFO((e.by_sentinel ? "sentinels" : "a cluster"));
    e.die();
    auto const begun = e.w.now;
    auto const least = e.w.settings.timeout * (e.w.settings.retry_attempts + 1);
    int const opened = e.w.opened;
    for (task* const one : e.begin()) {
      e.w.await(*one);
      INFO(one->label << ": " << one->error.message() << ", " << one->text);
      CHECK((one->error == errc::connect_failed || one->error == errc::connection_lost));
      CHECK(one->text.find(refused) != std::string::npos);
      CHECK(one->done_at - begun >= least);
      CHECK(one->done_at - begun <= least + e.w.settings.retry_delay);
    }
    CHECK(e.w.opened - opened < 100);
  }
}

TEST_CASE("election: where nobody can be asked for a master, attempts are used up at once",
          "[unit][machine][cluster]") {
  for (auto const how : {world::known::by_address, world::known::by_sentinel, world::known::by_nodes}) {
    world w(impatient(), 1, how);
    w.resolve_to(w.server);
    w.unreachable = refused;
    auto const begun = w.now;
    auto& one = w.await(w.once(1));
    CHECK(one.error == errc::connect_failed);
    CHECK(w.now - begun < w.settings.timeout);
  }
}

TEST_CASE("election: where nobody can be asked any more, attempts are used up at once", "[unit][machine][cluster]") {
  for (auto const how : each_way) {
    election e(how);
    INFO((e.by_sentinel ? "sentinels" : "a cluster"));
    e.die();
    e.next.restart(true);
    e.w.only_host = {};
    for (int i = 0; i < 2; ++i) e.w.lose(role::scout, fate::gone).run();  // one asks, and one listens
    auto const begun = e.w.now;
    for (task* const one : e.begin()) {
      e.w.await(*one);
      INFO(one->label << ": " << one->error.message() << ", " << one->text);
      CHECK((one->error == errc::connect_failed || one->error == errc::connection_lost));
      CHECK(e.w.now - begun < e.w.settings.timeout);
    }
  }
}

// Dies before every step of every call, and is followed five seconds later by one that has all that it had; and of
// these calls one is cancelled meanwhile.
TEST_CASE("election: the master dies at step k of calls without a wait", "[unit][machine][cluster]") {
  for (auto const how : each_way)
    for (bool const direct : {false, true})
      for (bool const cancelled : {false, true})
        for (int k = 0, most = 1; k < most; ++k) {
          election e(how);
          world& w = e.w;
          INFO((e.by_sentinel ? "sentinels" : "a cluster") << ", direct " << direct << ", step " << k);
          int const begin = w.steps();
          w.before_step = [&](world&) {
            if (w.steps() == begin + k) e.die();
          };
          auto const calls = e.begin(direct);
          w.run();
          most = w.steps() - begin;
          w.before_step = {};
          if (w.unreachable.empty()) break;  // all was over
          if (cancelled) w.cancel(*calls[static_cast<std::size_t>(k) % calls.size()]);
          w.pass(5s);
          e.elect();
          for (task* const one : calls) {
            w.await(*one);
            INFO(one->label << ": " << one->error.message() << ", " << one->text);
            CHECK((!one->error || cancelled));
          }
          w.pass(3s);
          CHECK_FALSE(e.next.exists("k"));
          if (calls[0]->granted()) w.await(w.release(*calls[0]));
          w.pass(3s);
          CHECK_FALSE(e.next.exists("free"));
        }
}
