#include <machine/guide.hpp>
#include <machine/sentinel_scout.hpp>
#include <support/catch.hpp>
#include <wire/sentinel_answer.hpp>

#include <algorithm>
#include <map>
#include <set>
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
  made.on_event = [](event const&) {};
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

std::string announced(std::string_view channel) {
  return as_list({"message", std::string(channel), channel == promoted ? "master m 1 2" : "m 1 2 3 4"});
}

// Three sentinels that answer at once, each what it is told here.
struct three_sentinels {
  void play(milliseconds length, watch_room::need wanted = watch_room::need::watch) {
    for (instant const end = r.shared.now + length; r.shared.now < end; r.shared.now += 10ms) {
      while (r.shared.timers.take_due(r.shared.now)) r.scout.on_timer();
      r.turn(wanted);
      auto const io = r.io;
      for (auto const& one : io.open) open(one.serial, one.to.host);
      for (auto const& one : io.write) answer(one.serial, hosts.at(one.serial), one.bytes);
    }
  }
  void open(std::uint32_t serial, std::string const& host) {
    hosts[serial] = host;
    ++opened[host];
    dead.contains(host) ? r.scout.open_failed(serial, errc::connect_failed, "refused") : r.scout.opened(serial);
  }
  void answer(std::uint32_t serial, std::string const& host, std::string const& bytes) {
    if (bytes.find("SUBSCRIBE") != bytes.npos) {
      ++listened[host];
      ears[host] = serial;
      if (closes.contains(host)) return r.scout.broken(serial);
      bool const refused = refusal.contains(host);
      r.scout.received(serial,
                       refused ? refusal[host] : "*3\r\n" + as_bulk("subscribe") + as_bulk(switched) + ":1\r\n");
    } else {
      ++asked[host];
      if (slow.contains(host)) return;
      r.scout.received(serial, found(knows.contains(host) ? "o" : "n", knows.contains(host) ? 2 : 1));
    }
  }
  void tell(std::string const& host, std::string_view channel) {
    knows.insert(host);
    r.scout.received(ears.at(host), announced(channel));
  }
  int questions() const {
    int all = 0;
    for (auto const& [host, count] : asked) all += count;
    return all;
  }

  watch_room r{{{"a", 1}, {"b", 1}, {"c", 1}}};
  std::set<std::string> dead, closes, slow, knows;  // knows: of the failover
  std::map<std::string, std::string> refusal;
  std::map<std::uint32_t, std::string> hosts;
  std::map<std::string, std::uint32_t> ears;
  std::map<std::string, int> opened, listened, asked;
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
  CHECK(r.turn() == "a b ");  // to listen
  r.scout.opened(r.serial("a"));
  r.turn();
  CHECK(r.said().find("+switch-master") != std::string::npos);
  auto const ear = r.serial("a");
  r.scout.opened(r.serial("b"));
  r.turn();
  r.said();
  r.pass(900ms);
  CHECK(r.said().empty());
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

TEST_CASE("scout: the first sentinel that tells of a failover is heard, and asked", "[unit][machine]") {
  three_sentinels all;
  all.play(1'200ms);
  CHECK(all.listened == std::map<std::string, int>{{"a", 1}, {"b", 1}, {"c", 1}});
  CHECK(all.asked.size() == 1);
  auto const channel = GENERATE(promoted, switched);
  all.tell("c", channel);
  all.play(10ms);
  all.play(10ms);
  CHECK(all.asked["c"] == 1);
  CHECK(all.r.claims.back() == "o:7/2");
}

TEST_CASE("scout: who tells of a failover while another one is asked is asked next", "[unit][machine]") {
  three_sentinels all;
  all.play(500ms);
  all.slow.insert("a");
  int const before = all.asked["a"];
  while (all.asked["a"] == before) all.play(10ms);
  all.tell("c", promoted);
  all.r.scout.received(all.r.serials["a"].front(), found("n", 1));  // as it was
  all.play(150ms);
  CHECK(all.r.claims.back() == "o:7/2");
  CHECK(all.asked["a"] == before + 1);
}

TEST_CASE("scout: whoever tells of a failover later makes one question more at most", "[unit][machine]") {
  three_sentinels all;
  all.play(1'200ms);
  int const before = all.questions();
  milliseconds const apart = GENERATE(0ms, 10ms, 150ms);
  for (auto const* host : {"c", "b", "a"}) {
    all.tell(host, host[0] == 'c' ? promoted : switched);
    if (apart > 0ms) all.play(apart);
  }
  all.tell("c", switched);
  all.play(300ms);
  CHECK(all.questions() > before);
  CHECK(all.questions() - before <= (apart > 100ms ? 4 : 2));
  CHECK(all.r.claims.back() == "o:7/2");
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
  three_sentinels all;
  all.dead.insert("a");
  all.play(4s, watch_room::need::press);
  CHECK(all.r.claims.size() > 10);
  CHECK(all.listened == std::map<std::string, int>{{"b", 1}, {"c", 1}});
  all.opened.clear();
  all.play(10s);
  CHECK(all.opened["a"] >= 9);
  CHECK(all.opened["a"] <= 21);  // it may be the one that is asked first, too
  all.dead.clear();
  all.play(1'100ms);
  CHECK(all.listened == std::map<std::string, int>{{"a", 1}, {"b", 1}, {"c", 1}});
}

TEST_CASE("scout: a sentinel that ends each connection is listened to again every second", "[unit][machine]") {
  three_sentinels all;
  auto const* const host = GENERATE("a", "b");
  bool const full = GENERATE(true, false);
  full ? static_cast<void>(all.refusal[host] = "-ERR max number of clients reached\r\n")
       : static_cast<void>(all.closes.insert(host));
  all.play(10s);
  CHECK(all.listened[host] >= 9);
  CHECK(all.listened[host] <= 11);
  CHECK(all.questions() <= 12);  // as if it were not there
  all.refusal.clear();
  all.closes.clear();
  all.play(2s);
  int const before = all.listened[host];
  all.r.scout.broken(all.ears.at(host));
  all.play(20ms);
  CHECK(all.listened[host] == before + 1);
}

TEST_CASE("scout: a sentinel that lets nobody listen is not tried again", "[unit][machine]") {
  three_sentinels all;
  all.refusal["b"] = "-NOPERM no permissions to run SUBSCRIBE\r\n";
  all.play(10s);
  CHECK(all.listened == std::map<std::string, int>{{"a", 1}, {"b", 1}, {"c", 1}});
  std::vector<std::string> told;
  for (auto const& note : all.r.out.notes)
    if (note.type == event_type::subscribe_refused) told.push_back(note.text);
  REQUIRE(told.size() == 1);
  CHECK(told[0].starts_with("sentinel b:1: NOPERM"));
}

TEST_CASE("scout: nobody is listened to before one has named a master", "[unit][machine]") {
  watch_room r({{"a", 1}, {"b", 1}}, "wrong");
  r.turn();
  for (auto const* host : {"a", "b"}) {
    r.reach(host);
    r.answer(host, "-WRONGPASS invalid\r\n");
    r.turn();
  }
  REQUIRE(r.complaints.size() == 1);
  CHECK(r.serials["a"].size() + r.serials["b"].size() == 2);
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
