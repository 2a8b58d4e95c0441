#include <support/catch.hpp>
#include <support/unit/stories.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

constexpr auto loading = "LOADING Redis is loading the dataset in memory";

}  // namespace

TEST_CASE("connect: three connections, one script, nothing left") {
  world w;
  task& one = w.connect(10s);
  w.run();
  CHECK(one.completions == 1);
  CHECK(one.error == error_code());
  for (role const as : {role::shared, role::direct, role::messages}) CHECK(w.connected(as));
  CHECK(w.server.subscriptions() == 0);
  int const before = w.opened;
  std::size_t const commands = w.server.log.size();
  task& again = w.connect(10s);
  w.run();
  CHECK(again.error == error_code());
  CHECK(w.opened == before);
  CHECK(w.server.log.size() == commands + 1);
  w.finish();
}

TEST_CASE("connect: tries until its wait ends, whatever the attempts of others, and says the last words") {
  config settings;
  settings.retry_attempts = 0;
  world w(settings);
  w.server.refuse("EVALSHA nothing", loading, -1);
  task& one = w.connect(5s);
  w.pass(4'990ms);
  CHECK_FALSE(one.done());
  w.pass(10ms);
  CHECK(one.error == errc::server_error);
  CHECK(one.text == loading);
  task& later = w.connect(5s);
  w.pass(1s);
  w.server.accept_all();
  w.pass(4s);
  CHECK(later.done());
  CHECK(later.error == error_code());
  w.finish();
}

TEST_CASE("connect: no route, then a server that is silent") {
  world w;
  w.unreachable = "Connection refused";
  task& none = w.connect(1s);
  w.pass(1s);
  CHECK(none.error == errc::connect_failed);
  CHECK(none.text == "Connection refused");
  w.unreachable.clear();
  task& first = w.connect(10s);
  w.pass(3s);
  CHECK(first.error == error_code());
  w.deafen(role::shared);
  task& silent = w.connect(500ms);
  w.pass(500ms);
  CHECK(silent.error == errc::timeout);
}

TEST_CASE("connect: a link that cannot be had is not waited for, one that dies after the answer asks again") {
  world w;
  w.server.refuse("CLIENT LIST", "NOPERM this user has no permissions to run the 'client|list' command", -1);
  w.server.refuse("SUBSCRIBE", "NOPERM this user has no permissions to run the 'subscribe' command", -1);
  task& one = w.connect(10s);
  w.run();
  CHECK(one.done());
  CHECK(one.error == error_code());
  CHECK_FALSE(w.connected(role::direct));
  CHECK(w.noted(event_type::lane_unchecked) == 1);
  CHECK(w.noted(event_type::subscribe_refused) == 1);
  w.finish();

  world v;
  task& two = v.connect(10s);
  v.until([&] { return v.connected(role::messages); });
  v.deafen(role::messages);
  v.run();
  REQUIRE_FALSE(two.done());
  v.lose(role::shared, fate::gone);
  v.pass(1s);
  CHECK(two.done());
  CHECK(two.error == error_code());
  CHECK(v.connected(role::messages));
  v.finish();
}

TEST_CASE("connect: cancelled or closed at every moment") {
  for (bool const closes : {false, true})
    for (int steps = 0;; ++steps) {
      world w;
      task& one = w.connect(10s);
      for (int i = 0; i < steps && !one.done(); ++i) w.step();
      bool const was_done = one.done();
      if (closes)
        w.close();
      else
        w.cancel(one);
      w.run();
      CHECK(one.completions == 1);
      if (was_done) break;
      CHECK(one.error == (closes ? error_code(errc::closed) : error_code(ECANCELED, boost::system::system_category())));
    }
}
