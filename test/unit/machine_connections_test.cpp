#include <machine/connections.hpp>
#include <support/catch.hpp>
#include <wire/kinds.hpp>

#include <utility>

namespace machine_connections {

using namespace latchkey;
using namespace latchkey::detail;
using namespace std::chrono_literals;

// The connections to one server, without anybody who has something to say: docs/architecture.md, "session".

namespace {

constexpr instant start{std::chrono::hours(1)};

std::string bulk(std::string_view text) {
  return '$' + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

config settings() { return {.connect_timeout = 5s, .timeout = 3s, .retry_delay = 1s, .ping_interval = 30s}; }

struct room final : connections_user {
  room() {
    shared.out = &out;
    shared.now = start;
  }
  ~room() { shared.timers.clear(); }

  void on_up(detail::link& one) override { said += "up" + number(one) + ' '; }
  void on_down(detail::link const& one, remains&& left, error_code const&, std::string_view) override {
    said += "down" + number(one) + ' ';
    last = std::move(left);
  }
  void on_trouble(error_code const&, std::string_view, bool transient) override {
    said += transient ? "trouble " : "end ";
  }
  void misled() override { said += "replica "; }
  void on_replicas(std::size_t, instant) override {}
  void on_kill_allowed() override { said += "allowed "; }
  void on_kill_refused(std::string_view) override { said += "refused "; }
  void on_unknown(script const&) override { said += "unknown "; }

  static std::string number(detail::link const& one) { return std::to_string(static_cast<int>(one.of)); }
  std::string heard() { return std::exchange(said, {}); }
  // What a turn opens.
  std::vector<role> turn(connections::needs wanted = {true, true, true}) {
    io.clear();
    all.open_needed(wanted, io);
    all.flush(io);
    std::vector<role> made;
    for (auto const& one : io.open) made.push_back(one.as);
    return made;
  }
  std::uint32_t serial(role which) const { return all.of(which).serial; }
  // How many calls of others were answered.
  int answer(std::uint32_t to, std::string const& bytes) {
    detail::link* const one = all.feed(to, bytes);
    int others = 0;
    for (reply got; one && all.next(*one, got);) others += all.answered(*one, got).has_value();
    return others;
  }
  void greet(role which, std::string const& id, std::string const& address = "1.2.3.4:5") {
    all.opened(serial(which));
    std::string answers =
        which == role::shared ? "*1\r\n" + bulk("master") + bulk("# Server\r\nrun_id:abc\r\n") + ":0\r\n" : "";
    if (which == role::shared && !shared.scripts.empty()) answers += "*2\r\n:1\r\n:0\r\n";
    answer(serial(which), answers + bulk("id=" + id + " addr=" + address + " fd=8"));
  }
  void check(std::string const& id, std::string const& address = "1.2.3.4:5") {
    answer(serial(role::shared), bulk("id=" + id + " addr=" + address));
  }
  // All three, ready.
  void connect() {
    turn();
    greet(role::shared, "1");
    turn();
    greet(role::direct, "2");
    greet(role::messages, "3");
    check("2");
    check("3");
    turn();
    heard();
  }
  void send(role to, sent_call call) {
    words command;
    command.add("X");
    all.of(to).write(shared, command, std::move(call));
  }

  context shared{settings()};
  actions out;
  io_actions io;
  std::string said;
  remains last;
  timer_node timer;
  hindrance away;
  connections all{shared, away, {{}, {}, 0, "host:1"}, *this, timer};
};

}  // namespace

TEST_CASE("connections: the shared one leads, and the others go to its peer and are checked against it",
          "[unit][machine]") {
  room r;
  CHECK(r.turn({false, true, true}).empty());
  CHECK(r.turn() == std::vector{role::shared});
  CHECK(r.turn().empty());
  r.greet(role::shared, "1");
  CHECK(r.heard() == "allowed up0 ");
  CHECK(r.all.server().run_id == "abc");
  CHECK(r.shared.counters.connected);
  CHECK(r.turn({true, false, false}).empty());
  CHECK(r.turn() == std::vector{role::direct, role::messages});
  CHECK(r.io.open.front().to_peer);
  r.greet(role::direct, "2");
  CHECK(r.heard().empty());
  CHECK_FALSE(r.all.lane_idle());
  r.check("2");
  CHECK(r.heard() == "up1 ");
  CHECK_FALSE(r.all.lane_idle());  // the engine does not know it yet
  r.turn();
  CHECK(r.io.lend == std::vector{r.serial(role::direct)});
  CHECK(r.all.lane_idle());
  r.greet(role::messages, "3");
  r.check("3", "1.2.3.4:6");
  CHECK(r.heard() == "down2 ");  // it leads to another server
}

TEST_CASE("connections: the handshake asks for the scripts that are used", "[unit][machine]") {
  room r;
  r.shared.scripts = {&reentrant_kind().script_for(ask::acquire), &reentrant_kind().script_for(ask::release)};
  r.turn();
  r.greet(role::shared, "1");
  CHECK(r.heard() == "allowed unknown up0 ");
}

TEST_CASE("connections: W3: a server from 7.2 on is told which library asks, and may refuse it", "[unit][machine]") {
  auto const [version, told] = GENERATE(table<char const*, bool>({{"6.2.14", false},
                                                                  {"7.0.15", false},
                                                                  {"7.2.4", true},
                                                                  {"8.0", true},
                                                                  {"10.1.1", true},
                                                                  {"7", false},
                                                                  {"", false}}));
  INFO(version);
  room r;
  r.turn();
  r.all.opened(r.serial(role::shared));
  r.answer(r.serial(role::shared),
           "*1\r\n" + bulk("master") +
               bulk(std::string("# Server\r\nredis_version:") + version + "\r\nrun_id:abc\r\n") + ":0\r\n" +
               bulk("id=1 addr=1.2.3.4:5"));
  CHECK(r.all.server().run_id == "abc");
  r.turn();
  auto const says = [&](role which) {
    for (auto const& one : r.io.write)
      if (one.serial == r.serial(which) && one.bytes.find("LIB-NAME\r\n$8\r\nlatchkey") != std::string::npos)
        return one.bytes.find("LIB-VER") != std::string::npos;
    return false;
  };
  CHECK(says(role::shared) == told);
  r.heard();
  if (told) r.answer(r.serial(role::shared), "-ERR unknown subcommand\r\n-NOPERM no permissions\r\n");
  r.all.opened(r.serial(role::direct));
  r.turn();
  CHECK(says(role::direct) == told);
  r.answer(r.serial(role::direct), (told ? "+OK\r\n+OK\r\n" : "") + bulk("id=2 addr=1.2.3.4:5"));
  r.check("2");
  CHECK(r.heard() == "up1 ");
}

TEST_CASE("connections: a replica is refused, and so is a password, for good", "[unit][machine]") {
  room r;
  r.turn();
  r.all.opened(r.serial(role::shared));
  r.answer(r.serial(role::shared), "*1\r\n" + bulk("slave"));
  CHECK(r.heard() == "down0 trouble replica ");
  r.turn();
  r.all.opened(r.serial(role::shared));
  r.answer(r.serial(role::shared), "-NOAUTH Authentication required.\r\n");
  CHECK(r.heard() == "down0 end ");
}

TEST_CASE("connections: who is given up leaves its calls, and the others end with the one that leads",
          "[unit][machine]") {
  room r;
  r.connect();
  r.send(role::shared, {.what = sent_call::type::script});
  r.send(role::shared, {.what = sent_call::type::plain});
  CHECK_FALSE(r.all.idle());
  CHECK(r.answer(r.serial(role::shared), "*0\r\n") == 1);
  std::uint32_t const gone = r.serial(role::shared);
  r.all.broken(gone, errc::connection_lost);
  CHECK(r.heard() == "trouble down1 down2 down0 ");
  CHECK(r.last.id == "1");
  CHECK(r.last.address == "1.2.3.4:5");
  CHECK(r.last.run_id == "abc");
  REQUIRE(r.last.calls.size() == 1);
  CHECK(r.last.calls.front().what == sent_call::type::plain);
  CHECK(r.answer(gone, "*0\r\n") == 0);
  CHECK(r.all.idle());
  CHECK_FALSE(r.shared.counters.connected);
  r.turn();
  CHECK(r.io.close.size() == 3);
  CHECK(r.serial(role::shared) > gone);
}

TEST_CASE("connections: a late answer ends one, a caller's as well, and silence asks whether anybody is there",
          "[unit][machine]") {
  room r;
  r.connect();
  detail::link& lane = r.all.of(role::direct);
  lane.borrowed = {.what = sent_call::type::script, .sent = start};
  lane.lent = true;
  CHECK(r.all.lent(lane.serial));
  CHECK_FALSE(r.all.lane_idle());
  r.send(role::shared, {.what = sent_call::type::script});
  r.shared.now = start + 3s - 1ms;
  r.all.on_timer(lane);
  r.all.on_timer(r.all.of(role::shared));
  CHECK(r.heard().empty());
  r.shared.now = start + 3s;
  r.all.on_timer(lane);
  CHECK(r.heard() == "down1 ");
  CHECK(r.last.calls.size() == 1);
  r.all.on_timer(r.all.of(role::messages));
  CHECK(r.all.of(role::messages).unanswered.empty());
  r.all.on_timer(r.all.of(role::shared));
  CHECK(r.heard() == "trouble down2 down0 ");
  room silent;
  silent.connect();
  silent.shared.now += 30s;
  silent.all.on_timer(silent.all.of(role::messages));
  CHECK(silent.all.of(role::messages).unanswered.size() == 1);
  CHECK(silent.all.of(role::messages).polled);
}

TEST_CASE("connections: this process came late itself, and reads before it judges", "[unit][machine]") {
  room r;
  r.connect();
  r.send(role::shared, {.what = sent_call::type::script});
  r.shared.now = start + 10s;
  r.all.on_timer(r.all.of(role::shared));
  CHECK(r.heard().empty());
  CHECK(r.answer(r.serial(role::shared), "*0\r\n") == 1);
  r.all.on_timer(r.all.of(role::shared));
  CHECK(r.heard().empty());
}

TEST_CASE("connections: a second failure in a row is followed by a pause, and decides", "[unit][machine]") {
  room r;
  r.connect();
  CHECK(r.all.decided(role::direct));
  for (bool const first : {true, false}) {
    r.all.broken(r.serial(role::direct), errc::connection_lost);
    CHECK(r.all.decided(role::direct) == !first);
    CHECK(r.turn() == (first ? std::vector{role::direct} : std::vector<role>{}));
  }
  CHECK(r.heard() == "down1 down1 ");
  r.shared.now += 1s;
  CHECK(r.turn() == std::vector{role::direct});
}

TEST_CASE("connections: a call that has ended is known to none of them", "[unit][machine]") {
  room r;
  r.connect();
  operation a, b;
  r.all.of(role::direct).borrowed.plain = &a;
  r.send(role::shared, {.what = sent_call::type::plain, .plain = &b});
  std::vector<operation*> found;
  r.all.collect(found);
  CHECK(found == std::vector{&a, &b});
  r.all.forget(a);
  r.all.forget(b);
  found.clear();
  r.all.collect(found);
  CHECK(found.empty());
  CHECK(r.answer(r.serial(role::shared), "+OK\r\n") == 1);
}

}  // namespace machine_connections
