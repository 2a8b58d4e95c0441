// Requests that nodes of a cluster send on, or tell to come again, in virtual time: docs/topologies.md.
#include <machine/home.hpp>
#include <support/catch.hpp>
#include <support/patience.hpp>
#include <support/unit/stories.hpp>
#include <support/unit/topologies.hpp>
#include <wire/cluster.hpp>
#include <wire/kinds.hpp>
#include <wire/scripts.hpp>

#include <algorithm>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

TEST_CASE("cluster: MOVED is followed at once, and confirmed", "[unit][machine][cluster][case-t8]") {
  cluster c;
  c.w.await(c.w.acquire(9, {.name = "warm"}));
  c.w.await(c.w.acquire(8, {.name = "there"}));
  auto& held = c.w.await(c.w.acquire(1));
  nodes::move(c.w, "there", 1);
  c.w.pass(6s);  // the second node is known
  nodes::move(c.w, "k", 1);
  auto const before = c.w.now;
  c.w.await(c.w.extend(held, 20s));
  CHECK(c.w.now == before);
  CHECK(c.w.snapshot().redirected == 1);
  CHECK(c.second.count("k", c.w.field(1)) == 1);
  c.w.await(c.w.release(held));
  CHECK_FALSE(c.second.exists("k"));
  CHECK(held.losses == 0);
}

TEST_CASE("cluster: MOVED to a node that nobody knows is followed when it has said so itself",
          "[unit][machine][cluster]") {
  cluster c;
  auto& held = c.w.await(c.w.acquire(1));
  nodes::move(c.w, "k", 1);
  c.w.await(c.w.release(held));
  CHECK_FALSE(c.second.exists("k"));
  CHECK(c.w.now < instant(std::chrono::hours(1)) + 200ms);
}

TEST_CASE("cluster: ASK is followed by this item alone, and the map stays", "[unit][machine][cluster][case-t12]") {
  cluster c;
  auto& held = c.held_and_half_moved();
  CHECK(c.w.ask(detail::query::is_locked).done() == false);
  c.w.await(c.w.extend(held, 20s));
  CHECK(c.second.ran("ASKING") == 2);
  c.w.await(c.w.release(held));
  CHECK_FALSE(c.second.exists("k"));
  CHECK(c.second.ran("ASKING") == 3);
  auto& fresh = c.w.acquire(2);  // no key anywhere
  c.w.await(fresh);
  CHECK(c.second.count("k", c.w.field(2)) == 1);
  nodes::move(c.w, "k", 1);
  c.w.await(c.w.release(fresh));
  CHECK_FALSE(c.second.exists("k"));
}

namespace {

// Another caller's pairs in the time that passes, each as fast as ever.
int pairs_meanwhile(cluster& c, milliseconds length) {
  int pairs = 0;
  for (instant const end = c.w.now + length; c.w.now < end; ++pairs) {
    auto const before = c.w.now;
    auto& other = c.w.await(c.w.acquire(7, {.name = "other"}));
    c.w.await(c.w.release(other));
    CHECK(c.w.now == before);
    c.w.pass(1ms * slowness);
  }
  return pairs;
}

std::size_t scripts_of(stepped_server const& one, std::string_view key) {
  return static_cast<std::size_t>(std::count_if(one.log.begin(), one.log.end(), [&](auto const& line) {
    return line.starts_with("EVAL") && line.find(key) != line.npos;
  }));
}

}  // namespace

TEST_CASE("cluster: a name that two nodes send to each other rests, and the others of both go on",
          "[unit][machine][cluster][case-t9]") {
  cluster c;
  c.w.await(c.w.acquire(8, {.name = "there"}));
  nodes::move(c.w, "there", 1);
  c.w.pass(6s);  // the second node is known
  auto const first = c.first.elsewhere, second = c.second.elsewhere;
  auto const slot = detail::slot_of("k");
  auto const to_each_other = [&](stepped_server& one, auto const& usual, std::string const& other) {
    one.elsewhere = [&, usual, other](stepped_server::words const& command, bool asking) {
      bool const of_k = std::find(command.begin(), command.end(), "k") != command.end();
      return of_k ? "MOVED " + std::to_string(slot) + ' ' + other + ":1" : usual(command, asking);
    };
  };
  to_each_other(c.first, first, "node1");
  to_each_other(c.second, second, "node0");
  auto& lost = c.w.acquire(1, {.wait = 20s});
  auto& waits = c.w.acquire(2, {.wait = 5s});
  CHECK(pairs_meanwhile(c, 5s) >= 4'900 / slowness);
  CHECK(waits.error == errc::timeout);
  auto const asked = scripts_of(c.first, "acquire k") + scripts_of(c.second, "acquire k");
  CHECK(asked > 10);
  CHECK(asked < 100);
  c.first.elsewhere = first;
  c.second.elsewhere = second;
  c.w.pass(1'100ms);
  CHECK(lost.granted());
  c.w.await(c.w.release(lost));
}

TEST_CASE("cluster: a channel that two nodes send to each other is asked for now and then",
          "[unit][machine][cluster]") {
  cluster c(2);
  nodes::move(c.w, "there", 1);
  for (std::size_t client = 0; client < 2; ++client)
    c.w.await(c.w.acquire(8, {.name = "{there}" + std::to_string(client), .client = client}));
  auto& held = c.w.await(c.w.acquire(1));
  auto const first = c.first.elsewhere, second = c.second.elsewhere;
  auto const to_each_other = [slot = detail::slot_of("k")](stepped_server& one, auto const& usual, std::string other) {
    one.elsewhere = [=](stepped_server::words const& command, bool asking) {
      return command[0] == "SSUBSCRIBE" ? "MOVED " + std::to_string(slot) + ' ' + other + ":1" : usual(command, asking);
    };
  };
  to_each_other(c.first, first, "node1");
  to_each_other(c.second, second, "node0");
  auto& waits = c.w.acquire(2, {.client = 1});
  c.w.pass(5s);
  CHECK_FALSE(waits.done());
  auto const asked = c.first.ran("SSUBSCRIBE") + c.second.ran("SSUBSCRIBE");
  CHECK(asked > 5);
  CHECK(asked < 200);
  c.first.elsewhere = first;
  c.second.elsewhere = second;
  c.w.pass(1'100ms);
  auto const released = c.w.now;
  c.w.release(held);
  c.w.await(waits);
  CHECK(c.w.now == released);
  c.w.await(c.w.release(waits));
}

TEST_CASE("cluster: channels of slots that move together are followed at once", "[unit][machine][cluster]") {
  cluster c(2);
  nodes::move(c.w, "there", 1);
  c.w.await(c.w.acquire(8, {.name = "there", .client = 1}));
  c.w.pass(200ms);
  for (auto const* name : {"k", "m", "n"}) {
    c.w.await(c.w.acquire(1, {.name = name}));
    c.w.acquire(2, {.name = name, .client = 1});
  }
  c.w.pass(10ms);
  for (auto const* name : {"k", "m", "n"}) nodes::move(c.w, name, 1);
  c.w.run();
  CHECK(c.second.subscriptions() == 3);
}

TEST_CASE("cluster: keys on their way keep their own lock waiting, and no other of the node",
          "[unit][machine][cluster][case-t13]") {
  cluster c;
  auto const usual = c.first.elsewhere;
  c.first.elsewhere = [&](stepped_server::words const& command, bool asking) {
    bool const of_k =
        std::any_of(command.begin(), command.end(), [](auto const& word) { return word.find("{k}") != word.npos; });
    return of_k ? "TRYAGAIN Multiple keys request during rehashing of slot" : usual(command, asking);
  };
  auto& one = c.w.acquire(1, {.name = "{k}1", .wait = 30s});
  auto& query = c.w.ask(detail::query::is_locked, 0, {.name = "{k}1"});
  auto& gives_up = c.w.once(3, {.name = "{k}2"});
  CHECK(pairs_meanwhile(c, 5s) >= 4'900 / slowness);
  c.w.pass(12s);
  CHECK_FALSE(one.done());
  CHECK(gives_up.error == errc::server_error);
  CHECK(gives_up.text.starts_with("TRYAGAIN"));
  CHECK(query.text.starts_with("TRYAGAIN"));
  CHECK(scripts_of(c.first, "acquire {k}1") > 5);
  CHECK(scripts_of(c.first, "acquire {k}1") < 50);
  c.first.elsewhere = usual;
  c.w.pass(1'100ms);
  CHECK(one.granted());
  c.w.await(c.w.release(one));
}

namespace {

// A read hold of each owner, whose scripts meet a key that is none of their KEYS and on its way.
struct half_moved_reads : cluster {
  half_moved_reads() : cluster() {
    for (task** one : {&extends, &releases}) {
      *one = &w.acquire(one == &extends ? 1 : 2, reads);
      w.await(**one);
    }
  }
  void say(std::string const& words) {
    std::string const lua = "local made = {} for i = 1, #KEYS do made[i] = '" + words + "' end return made";
    for (auto const* one : {&detail::read_write_acquire(), &detail::read_write_release(), &detail::read_write_extend()})
      first.answer_with(*one, words.empty() ? std::string_view() : std::string_view(lua));
  }
  how const reads{.wait = 30s, .lease = 60s, .which = &detail::read_write_kind()};
  task* extends = nullptr;
  task* releases = nullptr;
};

// As Redis 7, Redis 6.2 and Valkey say it.
constexpr char const* redis_7 = "ERR Script attempted to access a non local key in a cluster node";
constexpr char const* redis_6 = "@user_script: 41: Lua script attempted to access a non local key in a cluster node";
constexpr char const* valkey = "ERR Attempted to access a non local key in a cluster node";

}  // namespace

TEST_CASE("cluster: a script that meets a key on its way did nothing, and comes again",
          "[unit][machine][cluster][case-t20]") {
  half_moved_reads c;
  c.say(GENERATE(redis_7, redis_6, valkey));
  auto& waits = c.w.acquire(3, c.reads);
  auto& once = c.w.once(4, c.reads);
  auto& extended = c.w.extend(*c.extends, 90s);
  auto& released = c.w.release(*c.releases);
  c.w.pass(300ms);
  for (task const* one : {&waits, &once, &extended, &released}) CHECK_FALSE(one->done());
  c.say({});
  c.w.pass(1'100ms);
  CHECK((waits.granted() && once.granted()));
  for (task const* one : {&extended, &released}) CHECK((one->done() && !one->error));
  CHECK(released.released == release_result::released);
  CHECK(c.w.noted(event_type::warning) == 0);
  CHECK(c.w.snapshot().in_doubt == 0);
}

TEST_CASE("cluster: a script that goes on to meet keys on their way rests, and no other of the node does",
          "[unit][machine][cluster][case-t20]") {
  half_moved_reads c;
  c.say(redis_7);
  auto& waits = c.w.acquire(3, c.reads);
  auto& once = c.w.once(4, c.reads);
  auto& released = c.w.release(*c.releases);
  CHECK(pairs_meanwhile(c, 5s) >= 4'900 / slowness);
  c.w.pass(12s);
  CHECK(once.error == errc::server_error);
  CHECK(once.text == redis_7);
  CHECK_FALSE(waits.done());
  CHECK(scripts_of(c.first, "acquire k") > 5);
  CHECK(scripts_of(c.first, "acquire k") < 50);
  CHECK(scripts_of(c.first, "release k") < 50);
  c.say({});
  c.w.pass(1'100ms);
  CHECK(waits.granted());
  CHECK(c.first.count("k", c.w.field(2)) == 0);
  CHECK_FALSE(released.error == errc::lease_lost);
}

TEST_CASE("cluster: a question that meets a key on its way is asked again", "[unit][machine][cluster][case-t20]") {
  half_moved_reads c;
  int told = 0;
  c.first.elsewhere = [&, usual = c.first.elsewhere](stepped_server::words const& command, bool asking) {
    bool const asks = command[0] == "EVAL" && command[1] == detail::read_write_rest;
    return asks && ++told <= 3 ? std::string(redis_7) + " script: 0, on @user_script:1." : usual(command, asking);
  };
  auto& query = c.w.await(c.w.ask(detail::query::rest, 1, c.reads));
  CHECK_FALSE(query.error);
  CHECK(query.value > 50'000);
}

TEST_CASE("cluster: names of one tag at both ends of the way are asked about one by one, at once",
          "[unit][machine][cluster][case-t13]") {
  config settings = impatient();
  settings.retry_attempts = 0;  // nothing of this is a failure
  cluster c(1, settings);
  bool const says_ask = GENERATE(false, true);  // before 7.0.3, where one of several is missing
  c.first.elsewhere = [&, usual = c.first.elsewhere](stepped_server::words const& command, bool asking) {
    auto const said = usual(command, asking);
    bool const tells = says_ask && said.starts_with("TRYAGAIN");
    return tells ? "ASK " + std::to_string(detail::slot_of("k")) + " node1:1" : said;
  };
  auto& here = c.w.await(c.w.acquire(1, {.name = "{k}here"}));
  nodes::begin_move(c.w, "k", 1);
  auto& there = c.w.await(c.w.acquire(1, {.name = "{k}there"}));
  CHECK(c.second.count("{k}there", c.w.field(1)) == 1);
  c.w.pass(60s);  // the watchdog renews
  CHECK(here.losses + there.losses == 0);
  auto const before = c.w.now;
  std::vector<task*> all{&c.w.extend(here, 20s), &c.w.extend(there, 20s), &c.w.once(2, {.name = "{k}here"}),
                         &c.w.once(2, {.name = "{k}there"})};
  for (task* one : all) {
    c.w.await(*one);
    CHECK_FALSE(one->error);
  }
  CHECK(c.w.now == before);
  CHECK(scripts_of(c.first, "acquire {k}here {k}there") == 1);
  nodes::move(c.w, "k", 1);
  auto& first = c.w.release(here);
  auto& last = c.w.release(there);
  c.w.await(first, last);
  CHECK_FALSE(c.second.exists("{k}here"));
}

TEST_CASE("cluster: a question about keys on their way is asked again after a rest", "[unit][machine][cluster]") {
  cluster c;
  c.held_and_half_moved();
  auto const usual = c.second.elsewhere;
  int told = 0;
  c.second.elsewhere = [&](stepped_server::words const& command, bool asking) {
    bool const of_k = asking && std::find(command.begin(), command.end(), "k") != command.end();
    return of_k && ++told <= 3 ? "TRYAGAIN Multiple keys request during rehashing of slot" : usual(command, asking);
  };
  auto const before = c.w.now;
  auto& query = c.w.await(c.w.ask(detail::query::is_locked));
  CHECK_FALSE(query.error);
  CHECK(query.value == 1);
  CHECK(c.w.now - before > 50ms);
}

TEST_CASE("cluster: a node that refuses ASKING is told of once", "[unit][machine][cluster]") {
  cluster c;
  auto& held = c.held_and_half_moved();
  c.second.refuse("ASKING", "NOPERM this user has no permissions to run the 'asking' command", -1);
  auto& waits = c.w.await(c.w.acquire(2, {.wait = 3s}));
  CHECK_FALSE(waits.granted());
  c.w.await(c.w.extend(held, 20s));
  CHECK(c.second.ran("ASKING") > 1);
  CHECK(c.w.noted(event_type::warning) == 1);
  nodes::move(c.w, "k", 1);
  c.w.await(c.w.release(held));
}

TEST_CASE("cluster: an ASK to a node that cannot be reached counts as an attempt", "[unit][machine][cluster]") {
  cluster c;
  auto& held = c.held_and_half_moved();
  c.w.unreachable = "no route";
  c.w.only_host = "node1";
  auto& refused = c.w.await(c.w.once(2));
  CHECK(refused.error == errc::connect_failed);
  c.w.unreachable.clear();
  c.w.await(c.w.extend(held, 20s));
  c.w.await(c.w.release(held));
  CHECK(held.losses == 0);
  CHECK_FALSE(c.second.exists("k"));
}

TEST_CASE("cluster: what an ASK sends to a node that has left rests before it asks the way again",
          "[unit][machine][cluster][case-t58]") {
  cluster c;
  auto& held = c.held_and_half_moved({.lease = 60s});
  nodes::leave(c.w, 1);
  auto& waits = c.w.acquire(2, {.wait = 30s});
  auto& query = c.w.ask(detail::query::is_locked);
  auto& extended = c.w.extend(held, 90s);
  auto& forced = c.w.force_unlock();
  CHECK(pairs_meanwhile(c, 5s) >= 4'900 / slowness);
  c.w.pass(12s);
  for (task const* each : {&query, &extended, &forced}) CHECK(each->error == errc::connect_failed);
  CHECK(scripts_of(c.first, "acquire k") > 5);
  CHECK(scripts_of(c.first, "acquire k") < 30);
  CHECK(scripts_of(c.first, "extend k") < 30);
  CHECK_FALSE(waits.done());
  c.first.set("k", c.w.field(1), 1);  // who set up the cluster has put it back
  c.first.expire("k", 60'000);
  c.w.await(c.w.release(held));
  CHECK(held.losses == 0);
  granted(c.w, waits);
  c.w.await(c.w.release(waits));
}

TEST_CASE("cluster: a node that is told by a name that it has not is found by its slots",
          "[unit][machine][cluster][case-t59]") {
  cluster c;
  c.w.await(c.w.acquire(9, {.name = "warm"}));
  c.first.elsewhere = [usual = c.first.elsewhere](stepped_server::words const& command, bool asking) {
    std::string said = usual(command, asking);
    if (auto const host = said.find("node1"); host != said.npos) said.replace(host, 5, "?");
    return said;
  };
  c.w.only_host = "?";
  c.w.nobody_answers = true;  // who looks it up waits
  nodes::begin_move(c.w, "k", 1);
  auto& waits = c.w.acquire(1, {.wait = 20s});
  c.w.pass(5s);
  CHECK_FALSE(waits.done());
  CHECK(scripts_of(c.first, "acquire k") > 5);
  CHECK(scripts_of(c.first, "acquire k") < 30);
  nodes::move(c.w, "k", 1);
  c.w.pass(1'100ms);
  CHECK(waits.granted());
  CHECK(c.second.count("k", c.w.field(1)) == 1);
  nodes::move(c.w, "other", 1);
  auto const before = c.w.now;
  c.w.await(c.w.acquire(2, {.name = "other"}));
  CHECK(c.w.now - before < 200ms);
  c.w.await(c.w.release(waits));
}

TEST_CASE("cluster: what an ASK sent to a node that is given up goes back", "[unit][machine][cluster]") {
  cluster c;
  auto& third = c.w.add_server();
  c.w.resolve_to(c.w.server);
  auto& held = c.held_and_half_moved({.lease = 60s});
  c.w.nobody_answers = true;
  c.w.only_host = "node1";
  auto const before = c.w.now;
  auto& extended = c.w.extend(held, 90s);
  c.w.pass(20ms);
  third.set("k", c.w.field(1), 1);
  third.expire("k", 60'000);
  nodes::take_over(c.w, 1, 2, false);  // a replica from now on
  nodes::begin_move(c.w, "k", 2);
  c.w.await(extended);
  CHECK(c.w.now - before < c.w.settings.connect_timeout);
  CHECK(extended.error == latchkey::error_code());
  CHECK(third.ttl("k") > 60'000);
  c.w.await(c.w.release(held));
  CHECK(held.losses == 0);
}

TEST_CASE("cluster: what of too many is sent on is remembered for all, whatever moves away",
          "[unit][machine][cluster]") {
  detail::home::passers passing;
  for (std::size_t i = 0; i < passing.most; ++i) passing.add(std::to_string(i));
  CHECK(passing.has("0"));
  CHECK_FALSE(passing.has("another"));
  passing.add("another");
  passing.remove("0");
  CHECK(passing.has("another"));
}
