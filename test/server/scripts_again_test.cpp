// Scripts as they are, on a real server: what a second copy, or somebody who is not the holder, must find.
#include <support/catch.hpp>
#include <support/channel_ear.hpp>
#include <support/redis_server.hpp>
#include <wire/permit_semaphore_scripts.hpp>
#include <wire/plain_scripts.hpp>
#include <wire/read_write_scripts.hpp>
#include <wire/reentrant_scripts.hpp>
#include <wire/semaphore_scripts.hpp>

#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;
using words = std::vector<std::string>;

namespace {

struct script_world {
  redis_server server;
  raw_redis admin = server.admin();

  // The answer for the first, and only, item of the call.
  detail::reply run(detail::script const& what, words const& keys, words const& arguments) {
    words all = {"EVAL", std::string(what.text()), std::to_string(keys.size())};
    all.insert(all.end(), keys.begin(), keys.end());
    all.insert(all.end(), arguments.begin(), arguments.end());
    admin.send(all);
    auto const said = admin.receive();
    INFO(said.text);
    REQUIRE(said.elements.size() == 1);
    return said.elements[0];
  }
};

}  // namespace

TEST_CASE("scripts: a hand-off that finds the lock with the new owner already has not released it", "[server][again]") {
  script_world w;
  w.admin.ok("HSET", "k", "new", "1");
  auto const found = w.run(detail::reentrant_hand_off(), {"k", "channel"}, {"old", "new", "60000"});
  REQUIRE(found.elements.size() == 2);
  CHECK(found.elements[0].integer == -8);
  CHECK(found.elements[1].integer == -3);
}

TEST_CASE("scripts: a hand-off is not refused for want of memory", "[server][again]") {
  script_world w;
  w.admin.ok("HSET", "k", "old", "1");
  w.admin.ok("PEXPIRE", "k", 60'000);
  w.admin.ok("CONFIG", "SET", "maxmemory", 1);
  auto const done = w.run(detail::reentrant_hand_off(), {"k", "channel"}, {"old", "new", "60000"});
  w.admin.ok("CONFIG", "SET", "maxmemory", 0);
  REQUIRE(done.elements.size() == 2);
  CHECK(done.elements[0].integer == -5);
  CHECK(done.elements[1].integer == -3);
  CHECK(w.admin.hash("k") == std::map<std::string, std::string>{{"new", "1"}});
}

TEST_CASE("scripts: a renewal of a plain lock leaves another's hold alone", "[server][again]") {
  script_world w;
  w.admin.ok("SET", "k", "another", "PX", 1'000);
  CHECK(w.run(detail::plain_renew(), {"k"}, {"mine", "60000"}).integer == -8);
  CHECK(w.admin.integer("PTTL", "k") <= 1'000);
}

TEST_CASE("scripts: a permit is returned once", "[server][again]") {
  script_world w;
  w.admin.ok("SET", "k", 0);
  w.admin.ok("ZADD", "timeouts", "922337203685477", "id");
  words const keys = {"k", "timeouts", "channel", "mark"};
  CHECK(w.run(detail::permit_release(), keys, {"id"}).integer == -5);
  CHECK(w.run(detail::permit_release(), keys, {"id"}).integer == -8);
  CHECK(w.admin.text("GET", "k") == "1");
}

TEST_CASE("scripts: permits of a number are given back once", "[server][again]") {
  script_world w;
  w.admin.ok("SET", "k", 0);
  w.admin.ok("SET", "mark", 2);
  words const keys = {"k", "channel", "mark"};
  CHECK(w.run(detail::semaphore_give_back(), keys, {"20000"}).integer == -5);
  CHECK(w.run(detail::semaphore_give_back(), keys, {"20000"}).integer == -8);
  CHECK(w.admin.text("GET", "k") == "2");
}

TEST_CASE("scripts: a release that finds the hold gone and the lock free tells who waits", "[server][again]") {
  script_world w;
  auto const [script, arguments, message] = GENERATE(table<detail::script const*, words, std::string>({
      {&detail::reentrant_release(), words{"old", "0", "0"}, "0"},
      {&detail::plain_release(), words{"old", "0", "0"}, "0"},
      {&detail::read_write_release(), words{"0", "old", "0", "0"}, "0"},
      {&detail::read_write_release(), words{"1", "old:write", "0", "0"}, "1"},
  }));
  channel_ear ear(w.server, "channel");
  CHECK(w.run(*script, {"k", "channel"}, arguments).integer == -8);
  CHECK(ear.next() == message);
}
