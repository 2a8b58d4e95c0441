#include <machine/guide.hpp>
#include <machine/sentinel_scout.hpp>
#include <support/catch.hpp>
#include <wire/sentinel_answer.hpp>

#include <algorithm>
#include <map>
#include <utility>

using namespace latchkey;
using namespace latchkey::detail;
using namespace std::chrono_literals;

// Whom a client asks for its master, and when: docs/topologies.md.

namespace {

constexpr instant beginning{std::chrono::hours(1)};

std::string as_bulk(std::string_view text) {
  return '$' + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

std::string as_list(std::vector<std::string> const& words) {
  std::string made = '*' + std::to_string(words.size()) + "\r\n";
  for (auto const& one : words) made += as_bulk(one);
  return made;
}

std::string found(std::string const& host, int epoch, std::string const& others = "*0\r\n") {
  return as_list({host, "7"}) + as_list({"name", "m", "config-epoch", std::to_string(epoch)}) + others;
}

config scout_settings() {
  config made;
  made.connect_timeout = 2s;
  made.timeout = 1s;
  return made;
}

struct watch_room final : scout_user {
  using need = sentinel_scout::need;

  explicit watch_room(std::vector<node_address> seeds, std::string password = {}, std::string user = {},
                      config const& given = scout_settings())
      : shared{given}, scout(shared, {std::move(seeds), "m", std::move(user), std::move(password)}, *this) {
    shared.out = &out;
    shared.now = beginning;
  }
  ~watch_room() { shared.timers.clear(); }

  routes::verdict on_claim(node_address const& at, std::uint64_t epoch, std::size_t, instant) override {
    claims.push_back(to_string(at) + "/" + std::to_string(epoch));
    return epoch < oldest ? routes::verdict::stale : routes::verdict::known;
  }
  void on_no_claim(error_code const& why, std::string_view text, bool transient) override {
    complaints.push_back(why.message() + (transient ? ": " : "! ") + std::string(text));
    last_error = why;
  }
  node_address reached_by(node_address const& at) const override { return detail::reached_by(shared, at); }

  // A turn; answers which hosts are connected to now, in order.
  std::string turn(need wanted = need::watch) {
    io.clear();
    scout.turn(io, wanted);
    std::string made;
    for (auto const& one : io.write) fresh += one.bytes;
    for (auto const& one : io.open) {
      made += one.to.host + ' ';
      serials[one.to.host].push_back(one.serial);
      CHECK(one.as == role::scout);
    }
    return made;
  }
  std::uint32_t serial(std::string const& host) { return serials[host].back(); }
  // Since it was asked last.
  std::string said() { return std::exchange(fresh, {}); }
  void answer(std::string const& host, std::string const& bytes) { scout.received(serial(host), bytes); }
  // Until a question has gone there.
  void reach(std::string const& host) {
    scout.opened(serial(host));
    turn();
  }
  // The first one has named a master, and is listened to: by this connection.
  std::uint32_t hear_the_first() {
    turn();
    reach("a");
    answer("a", found("n", 1));
    turn();
    scout.opened(serial("a"));
    turn();
    return serial("a");
  }
  void pass(milliseconds length) {
    instant const end = shared.now + length;
    while (shared.timers.first() <= end) {
      shared.now = std::max(shared.now, shared.timers.first());
      while (shared.timers.take_due(shared.now)) scout.on_timer();
      seen += turn();
    }
    shared.now = end;
  }

  context shared;
  actions out;
  io_actions io;
  std::map<std::string, std::vector<std::uint32_t>> serials;
  std::vector<std::string> claims, complaints;
  error_code last_error;
  std::uint64_t oldest = 0;
  std::string fresh;
  std::string seen;  // connected to while time passed
  sentinel_scout scout;
};

}  // namespace

TEST_CASE("sentinels: what they answer", "[unit][wire]") {
  auto const text = [](std::string said) {
    reply made;
    made.kind = reply::type::string;
    made.text = std::move(said);
    return made;
  };
  auto const of = [&](std::vector<std::string> const& all) {
    reply made;
    made.kind = reply::type::array;
    for (auto const& one : all) made.elements.push_back(text(one));
    return made;
  };
  CHECK(read_address(of({"10.0.0.1", "6379"})) == node_address{"10.0.0.1", 6379});
  for (auto const& bad : {of({"a"}), of({"a", "0"}), of({"a", "70000"}), of({"a", "1x"}), of({"", "1"}), text("a")})
    CHECK_FALSE(read_address(bad));
  CHECK(read_epoch(of({"name", "m", "config-epoch", "12"})) == 12u);
  CHECK_FALSE(read_epoch(of({"name", "m"})));
  CHECK_FALSE(read_epoch(of({"config-epoch"})));
  CHECK(read_replicas(of({"num-slaves", "2"})) == 2);
  CHECK(read_replicas(of({"num-slaves", "x"})) == 0);
  reply both;
  both.kind = reply::type::array;
  both.elements = {of({"ip", "a", "port", "1"}), of({"ip", "b"}), of({"port", "2", "ip", "::1"})};
  CHECK(read_sentinels(both) == std::vector<node_address>{{"a", 1}, {"::1", 2}});
  CHECK(to_string(node_address{"::1", 2}) == "[::1]:2");
  CHECK(switches(switched, "m 1.1.1.1 1 2.2.2.2 2", "m"));
  CHECK_FALSE(switches(switched, "mm 1.1.1.1 1 2.2.2.2 2", "m"));
  CHECK(switches(promoted, "master m 1.1.1.1 1", "m"));
  CHECK_FALSE(switches(promoted, "master mm 1.1.1.1 1", "m"));
  CHECK_FALSE(switches(promoted, "m", "m"));
  CHECK(names_no_master(reply{}));
}

TEST_CASE("scout: one is asked, found good, listened to and asked again", "[unit][machine]") {
  watch_room r({{"a", 1}, {"b", 1}});
  CHECK(r.turn() == "a ");
  r.reach("a");
  CHECK(r.said().find("GET-MASTER-ADDR-BY-NAME") != std::string::npos);
  r.answer("a", found("n", 3));
  CHECK(r.claims == std::vector<std::string>{"n:7/3"});
  CHECK(r.turn() == "a ");  // to listen
  r.scout.opened(r.serial("a"));
  r.turn();
  CHECK(r.said().find("+switch-master") != std::string::npos);
  r.pass(900ms);
  CHECK(r.said().empty());
  auto const ear = r.serial("a");
  r.scout.received(ear, as_list({"message", "+switch-master", "other 1 2 3 4"}));
  r.turn();
  CHECK(r.said().empty());
  r.scout.received(ear, as_list({"message", "+switch-master", "m 1 2 3 4"}));
  r.turn();
  CHECK(r.said().find("SENTINEL") != std::string::npos);
  CHECK(r.seen.empty());
}

TEST_CASE("scout: the sentinel that leads a failover is asked as soon as it has promoted one", "[unit][machine]") {
  for (bool const allowed : {true, false}) {
    watch_room r({{"a", 1}});
    auto const ear = r.hear_the_first();
    auto const asked = r.serials["a"].front();
    REQUIRE(ear != asked);
    CHECK(r.said().find(promoted) != std::string::npos);
    auto const confirmed = [](std::string_view channel) {
      return "*3\r\n" + as_bulk("subscribe") + as_bulk(channel) + ":1\r\n";
    };
    r.scout.received(ear, confirmed(switched));
    r.scout.received(ear, allowed ? confirmed(promoted) : "-NOPERM no permissions to access a channel\r\n");
    r.turn();
    r.pass(100ms);
    CHECK_FALSE(r.said().empty());  // what was announced before
    r.scout.received(asked, found("n", 1));
    r.pass(500ms);
    CHECK(r.said().empty());
    r.scout.received(ear, allowed ? as_list({"message", std::string(promoted), "master m 1 2"})
                                  : as_list({"message", std::string(switched), "m 1 2 3 4"}));
    r.turn();
    CHECK_FALSE(r.said().empty());
    CHECK(r.claims.size() == 2);
  }
}

TEST_CASE("scout: what one sentinel says of a failover is asked of that one", "[unit][machine]") {
  watch_room r({{"a", 1}, {"b", 1}});
  auto const ear = r.hear_the_first();
  auto const asked = r.serials["a"].front();
  r.pass(200ms);
  r.said();
  r.scout.distrust();  // the other one is the first to be asked
  r.turn();
  r.reach("b");
  r.answer("b", found("n", 1));
  r.pass(200ms);
  r.said();
  r.scout.received(ear, as_list({"message", std::string(promoted), "master m 1 2"}));
  r.turn();
  CHECK_FALSE(r.said().empty());
  auto const claims = r.claims.size();
  r.scout.received(asked, found("o", 2));
  REQUIRE(r.claims.size() == claims + 1);
  CHECK(r.claims.back() == "o:7/2");
}

TEST_CASE("scout: the next one is asked, too, when an answer takes long", "[unit][machine]") {
  watch_room r({{"a", 1}, {"b", 1}, {"c", 1}});
  CHECK(r.turn() == "a ");
  r.scout.opened(r.serial("a"));
  r.turn();
  r.pass(99ms);
  CHECK(r.seen.empty());
  r.pass(2ms);
  CHECK(r.seen == "b ");
  r.reach("b");
  r.answer("b", found("n", 1));
  CHECK(r.claims.size() == 1);
  // From now on it is the first, and the one that was silent the last.
  r.pass(2s);
  CHECK(r.seen.starts_with("b b c"));
  CHECK(r.claims.size() == 1);
}

TEST_CASE("scout: who cannot be reached is passed over at once", "[unit][machine]") {
  watch_room r({{"a", 1}, {"b", 1}});
  r.turn();
  r.scout.open_failed(r.serial("a"), errc::connect_failed, "refused");
  CHECK(r.turn() == "b ");
  r.reach("b");
  r.scout.broken(r.serial("b"));
  CHECK(r.complaints.size() == 1);
  CHECK(r.last_error == errc::connect_failed);
  CHECK(r.complaints[0].find("sentinel a:1: refused") != std::string::npos);
  // Pauses grow up to a second.
  int rounds = 0;
  instant const end = r.shared.now + 60s;
  while (r.shared.now < end) {
    r.pass(10ms);
    for (auto const* host : {"a", "b"})
      if (r.seen.find(host) != std::string::npos) {
        rounds += host[0] == 'a';
        r.seen.clear();
        r.scout.open_failed(r.serial(host), errc::connect_failed, "refused");
        r.turn();
        r.scout.open_failed(r.serial(host[0] == 'a' ? "b" : "a"), errc::connect_failed, "refused");
        r.turn();
      }
  }
  CHECK(rounds >= 50);
  CHECK(rounds < 150);
}

TEST_CASE("scout: a round that found nobody says what says most", "[unit][machine]") {
  watch_room r({{"a", 1}, {"b", 1}}, "secret");
  r.turn();
  r.scout.open_failed(r.serial("a"), errc::connect_failed, "refused");
  r.turn();
  SECTION("no such master") {
    r.reach("b");
    CHECK(r.said().find("AUTH") != std::string::npos);
    r.answer("b", "+OK\r\n*-1\r\n-ERR No such master with that name\r\n*0\r\n");
    CHECK(r.last_error == errc::no_master);
    CHECK(r.complaints[0].find('!') != std::string::npos);
  }
  SECTION("a wrong password") {
    r.reach("b");
    r.answer("b", "-WRONGPASS invalid\r\n");
    CHECK(r.last_error == errc::auth_failed);
    CHECK(r.complaints[0].find('!') != std::string::npos);
    CHECK(r.complaints[0].find("secret") == std::string::npos);
  }
  SECTION("one that does not know AUTH repeats no password") {
    r.reach("b");
    r.answer("b", "-ERR unknown command `AUTH`, with args beginning with: `secret`\r\n");
    CHECK(r.complaints[0].find("secret") == std::string::npos);
  }
  SECTION("an older epoch") {
    r.oldest = 9;
    r.reach("b");
    r.answer("b", "+OK\r\n" + found("n", 3));
    CHECK(r.last_error == errc::connect_failed);
    CHECK(r.complaints[0].find(": ") != std::string::npos);
  }
  SECTION("no answer in time") {
    r.reach("b");
    r.pass(1'100ms);
    CHECK(r.complaints.size() == 1);
  }
  SECTION("not the protocol") {
    r.reach("b");
    r.answer("b", "HTTP/1.1 400\r\n");
    CHECK(r.last_error == errc::protocol_error);
  }
  CHECK(r.complaints.size() == 1);
}

TEST_CASE("scout: others are learned of, each once and not without end", "[unit][machine]") {
  watch_room r({{"a", 1}});
  r.turn();
  r.reach("a");
  std::string others = "*40\r\n";
  for (int i = 0; i < 40; ++i) others += as_list({"ip", "x" + std::to_string(i % 35), "port", "1"});
  r.answer("a", found("n", 1, others));
  CHECK(r.scout.known() == 32);
}

TEST_CASE("scout: others are not learned of if the settings say so", "[unit][machine]") {
  config given = scout_settings();
  given.sentinels_discovery = false;
  watch_room r({{"a", 1}}, {}, {}, given);
  r.turn();
  r.reach("a");
  CHECK(r.said().find("SENTINELS") == std::string::npos);
  r.answer("a", as_list({"n", "7"}) + as_list({"name", "m", "config-epoch", "1"}));
  CHECK(r.claims.size() == 1);
  CHECK(r.scout.known() == 1);
}

TEST_CASE("scout: addresses of others that are learned of can be mapped", "[unit][machine][case-t11]") {
  config given = scout_settings();
  given.nat_map = [](std::string const& host, std::uint16_t port) {
    return std::pair("real-" + host, static_cast<std::uint16_t>(port + 1));
  };
  watch_room r({{"a", 1}}, {}, {}, given);
  r.turn();
  r.reach("a");
  r.answer("a", found("n", 1, "*1\r\n" + as_list({"ip", "b", "port", "1"})));
  REQUIRE(r.scout.known() == 2);
  r.scout.distrust();
  r.pass(150ms);
  CHECK(r.seen.find("real-b ") != std::string::npos);
}

TEST_CASE("scout: a sentinel is told the user and the password that it asks for", "[unit][machine]") {
  watch_room r({{"a", 1}}, "secret", "watcher");
  r.turn();
  r.reach("a");
  CHECK(r.said().starts_with(as_list({"AUTH", "watcher", "secret"})));
}

TEST_CASE("scout: whoever was wrong is asked last", "[unit][machine]") {
  watch_room r({{"a", 1}, {"b", 1}});
  r.turn();
  r.reach("a");
  r.answer("a", found("n", 1));
  r.scout.distrust();
  r.pass(150ms);
  CHECK(r.seen.find("b ") != std::string::npos);
}

TEST_CASE("scout: while the server that one names is missing others are asked in turn", "[unit][machine][case-t5]") {
  using need = watch_room::need;
  watch_room r({{"a", 1}, {"b", 1}});
  bool const missing = GENERATE(true, false);
  for (std::string const host : {"a", "b"}) {
    if (host == "b" && !missing) break;
    REQUIRE(r.turn(need::press) == host + ' ');
    r.scout.opened(r.serial(host));
    r.turn(need::press);
    if (!missing) r.turn(need::watch);  // by now
    r.answer(host, found("n", 1));
    r.shared.now += 1s;
  }
  r.said();
  r.turn(need::press);
  CHECK(r.said().find("GET-MASTER") != std::string::npos);
  r.scout.received(r.serials["a"].front(), found("n", 2));  // whose turn it is
  CHECK(r.claims.back() == "n:7/2");
}

TEST_CASE("scout: one that is dead keeps nobody from being listened to", "[unit][machine][case-t5]") {
  watch_room r({{"dead", 1}, {"b", 1}, {"c", 1}});
  int listened = 0;
  auto const turn = [&] {
    r.turn(watch_room::need::press);
    auto const io = r.io;
    for (auto const& one : io.open) {
      if (one.to.host == "dead")
        r.scout.open_failed(one.serial, errc::connect_failed, "refused");
      else
        r.scout.opened(one.serial);
    }
    for (auto const& one : io.write) {
      if (one.bytes.find("SUBSCRIBE") != one.bytes.npos) ++listened;
      if (one.bytes.find("GET-MASTER") != one.bytes.npos) r.scout.received(one.serial, found("n", 1));
    }
  };
  for (int i = 0; i < 400; ++i) {
    turn();
    r.shared.now += 10ms;
    while (r.shared.timers.take_due(r.shared.now)) r.scout.on_timer();
  }
  CHECK(r.claims.size() > 10);
  CHECK(listened == 1);
}

TEST_CASE("scout: nobody is asked more often than every 100 ms, nor while nobody needs a server", "[unit][machine]") {
  watch_room r({{"a", 1}});
  r.turn();
  r.reach("a");
  r.answer("a", found("n", 1));
  r.said();
  int asked = 0;
  for (int i = 0; i < 1000; ++i) {
    r.scout.hurry();
    r.turn(watch_room::need::press);
    if (r.said().find("GET-MASTER") != std::string::npos) {
      ++asked;
      r.scout.received(r.serials["a"].front(), found("n", 1));
    }
    r.shared.now += 1ms;
  }
  CHECK(asked >= 8);
  CHECK(asked <= 10);
  r.turn(watch_room::need::nothing);
  CHECK(r.shared.timers.empty());
  r.shared.now += 10s;
  CHECK(r.turn(watch_room::need::nothing).empty());
  CHECK(r.said().empty());
}
