// How soon a waiter of the fair lock looks again, by his place in the line: the script, on a real server.
#include <support/catch.hpp>
#include <support/redis_server.hpp>
#include <wire/fair_scripts.hpp>

#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

constexpr int far_behind = 40;

struct line_of_waiters {
  redis_server server;
  raw_redis admin = server.admin();

  // What this waiter is answered, who is ready to wait for a minute.
  detail::reply look(std::string const& who) {
    std::vector<std::string> const words{
        "EVAL", std::string(detail::fair_acquire().text()), "4", "k", "q", "t", "c", who, "1", "30000", "60000", "1"};
    admin.send(words);
    auto const said = admin.receive();
    INFO(said.text);
    REQUIRE(said.elements.size() == 1);
    return said.elements[0];
  }
  void all_look() {
    for (int i = 0; i < far_behind; ++i) {
      auto const said = look(name_of(i));
      INFO(name_of(i) << " " << said.text);
      CHECK(said.integer > 0);
    }
  }
  static std::string name_of(int place) { return "w:" + std::to_string(place); }
  void hold(int milliseconds) {
    admin.ok("HSET", "k", "holder", "1");
    admin.ok("PEXPIRE", "k", milliseconds);
  }
};

}  // namespace

TEST_CASE("fair lock: who stands first looks often, also when a later end has put the scores in another order",
          "[server][fair]") {
  line_of_waiters w;
  w.hold(1'000);
  w.all_look();
  w.hold(3'600'000);
  for (int times = 0; times < 2; ++times) CHECK(w.look(w.name_of(0)).integer <= 500);
  w.all_look();
  CHECK(w.look(w.name_of(0)).integer <= 500);
  CHECK(w.look(w.name_of(far_behind - 1)).integer >= 125 * (far_behind - 1));
}

TEST_CASE("fair lock: while it is free also those far from the head look soon", "[server][fair]") {
  line_of_waiters w;
  w.hold(60'000);
  w.all_look();
  w.admin.ok("DEL", "k");  // and whoever stands first has died
  auto const soon = w.look(w.name_of(far_behind - 1)).integer;
  CHECK(soon <= 2'000);
  CHECK(soon > 1'000);  // but not as often as those near the head
}

TEST_CASE("fair lock: who may not read the scores of others waits in any place", "[server][fair]") {
  line_of_waiters w;
  w.hold(60'000);
  w.admin.ok("ACL", "SETUSER", "default", "-zrange");
  w.all_look();
  w.all_look();
}
