#include <machine/context.hpp>
#include <machine/name_machine.hpp>
#include <machine/outbox.hpp>
#include <machine/subscriptions.hpp>
#include <support/catch.hpp>

#include <algorithm>

namespace machine_parts {

using namespace latchkey;
using namespace latchkey::detail;
using namespace std::chrono_literals;

namespace {

constexpr instant start{std::chrono::hours(1)};

struct ear final : listener {
  void on_confirmed() override { heard += "confirmed "; }
  void on_message(std::string_view payload) override { heard += "message:" + std::string(payload) + " "; }
  void on_refused() override { heard += "refused "; }
  std::string heard;
};

struct room {
  room() {
    shared.out = &out;
    shared.now = start;
  }
  context shared{config{}};
  actions out;
};

std::string sent(subscriptions& channels) {
  std::string made;
  for (auto const& one : channels.take_unsent()) made += (one.subscribe ? "+" : "-") + one.channel + " ";
  return made;
}

}  // namespace

TEST_CASE("timer queue: the earliest first, each once") {
  timer_queue list;
  std::array<timer_node, 4> nodes;
  CHECK(list.first() == never);
  CHECK(list.take_due(start) == nullptr);
  list.set(nodes[0], start + 3s);
  list.set(nodes[1], start + 1s);
  list.set(nodes[2], start + 2s);
  list.set(nodes[3], never);
  CHECK(list.size() == 3);
  CHECK(list.first() == start + 1s);
  list.set(nodes[1], start + 4s);
  list.drop(nodes[2]);
  list.drop(nodes[3]);
  CHECK(list.take_due(start + 2s) == nullptr);
  CHECK(list.take_due(start + 5s) == &nodes[0]);
  CHECK(list.take_due(start + 5s) == &nodes[1]);
  CHECK(list.take_due(start + 5s) == nullptr);
  CHECK(list.empty());
}

TEST_CASE("timer queue: a lazy node keeps its earlier time") {
  timer_queue list;
  timer_node node;
  list.set_lazily(node, start + 2s);
  list.set_lazily(node, start + 9s);
  CHECK(list.first() == start + 2s);
  list.set_lazily(node, start + 1s);
  CHECK(list.first() == start + 1s);
  list.clear();
  CHECK(list.empty());
}

namespace {

// On a connection, and who may want its channels.
struct heard : room {
  heard() { channels.connected(); }

  subscriptions channels{shared};
  ear a, b;
};

}  // namespace

TEST_CASE("subscriptions: wanted before the connection is there") {
  room r;
  subscriptions channels(r.shared);
  ear a;
  channels.want("x", a);
  CHECK(r.out.turn);
  CHECK(a.listening() == listener::view::asked);
  CHECK(sent(channels).empty());
  channels.connected();
  CHECK(sent(channels) == "+x ");
  CHECK(sent(channels).empty());
  channels.confirmed("x");
  CHECK(a.listening() == listener::view::on);
  channels.message("x", "0");
  channels.message("y", "0");
  CHECK(a.heard == "confirmed message:0 ");
  channels.drop("x", a);
  CHECK(a.listening() == listener::view::off);
  CHECK(sent(channels) == "-x ");
  CHECK(channels.size() == 0);
}

TEST_CASE_METHOD(heard, "subscriptions: two who want one channel cost one command") {
  channels.want("x", a);
  channels.want("x", b);
  CHECK(sent(channels) == "+x ");
  channels.confirmed("x");
  CHECK(b.listening() == listener::view::on);
  channels.drop("x", a);
  CHECK(sent(channels).empty());
  channels.message("x", "0");
  CHECK(a.heard == "confirmed ");
  CHECK(b.heard == "confirmed message:0 ");
  channels.drop("x", b);
}

TEST_CASE_METHOD(heard,
                 "subscriptions: wanted again before the UNSUBSCRIBE was read, only the last confirmation counts") {
  channels.want("x", a);
  CHECK(sent(channels) == "+x ");
  channels.drop("x", a);
  channels.want("x", a);
  CHECK(sent(channels) == "-x +x ");
  CHECK(a.listening() == listener::view::asked);
  channels.confirmed("x");  // of the first SUBSCRIBE, which the UNSUBSCRIBE has undone
  CHECK(a.listening() == listener::view::asked);
  channels.confirmed("x");
  CHECK(a.listening() == listener::view::on);
  channels.drop("x", a);
}

TEST_CASE_METHOD(heard, "subscriptions: after a reconnect everything is asked for and confirmed anew") {
  channels.want("x", a);
  channels.want("y", b);
  sent(channels);
  channels.confirmed("x");
  channels.disconnected();
  CHECK(a.listening() == listener::view::asked);
  channels.connected();
  CHECK(sent(channels).size() == 6);
  channels.confirmed("x");
  CHECK(a.heard == "confirmed confirmed ");
  channels.drop("x", a);
  channels.drop("y", b);
}

TEST_CASE_METHOD(
    heard, "subscriptions: one that is refused keeps nobody else deaf, and is asked for anew on the next connection") {
  channels.want("x", a);
  channels.want("y", b);
  sent(channels);
  channels.refused_by_server("NOPERM");
  CHECK(a.heard == "refused ");
  CHECK(a.listening() == listener::view::refused);
  channels.confirmed("y");
  CHECK(b.listening() == listener::view::on);
  ear c;
  channels.want("x", c);
  CHECK(c.listening() == listener::view::refused);
  CHECK(sent(channels).empty());
  channels.disconnected();
  channels.connected();
  CHECK(a.listening() == listener::view::asked);
  CHECK(sent(channels).size() == 6);
  channels.drop("x", a);
  channels.drop("x", c);
  channels.drop("y", b);
}

TEST_CASE_METHOD(heard, "subscriptions: what was refused is asked for again by those who look, once at a time") {
  channels.want("x", a);
  channels.ask_refused("x");
  CHECK(sent(channels) == "+x ");
  channels.refused_by_server("NOPERM");
  CHECK(shared.counters.messages_refused);
  for (int looks = 0; looks < 2; ++looks) channels.ask_refused("x");
  CHECK(sent(channels) == "+x ");
  channels.ask_refused("x");
  CHECK(sent(channels).empty());
  channels.refused_by_server("NOPERM");
  CHECK(a.heard == "refused ");
  channels.ask_refused("x");
  CHECK(sent(channels) == "+x ");
  CHECK(a.listening() == listener::view::refused);
  channels.confirmed("x");
  CHECK(a.listening() == listener::view::on);
  CHECK(a.heard == "refused confirmed ");
  CHECK_FALSE(shared.counters.messages_refused);
  channels.drop("x", a);
}

TEST_CASE_METHOD(heard, "subscriptions: what was refused and is asked for again is not kept when nobody wants it") {
  for (bool const again : {false, true}) {
    channels.want("x", a);
    sent(channels);
    channels.refused_by_server("NOPERM");
    if (again) channels.ask_refused("x");
    sent(channels);
    channels.drop("x", a);
    CHECK(sent(channels) == (again ? "-x " : ""));
  }
}

TEST_CASE_METHOD(heard, "subscriptions: where connections do not last, nobody waits for a confirmation") {
  channels.want("x", a);
  channels.disconnected(true);
  CHECK(a.heard == "refused ");
  channels.want("y", b);
  CHECK(b.listening() == listener::view::refused);
  channels.connected();
  CHECK(sent(channels).size() == 6);
  CHECK(a.listening() == listener::view::refused);
  channels.confirmed("x");
  CHECK(a.listening() == listener::view::on);
  channels.disconnected(true);
  CHECK(a.heard == "refused confirmed refused ");
  CHECK(b.heard.empty());
  channels.disconnected(false);
  CHECK(a.listening() == listener::view::asked);
  channels.drop("x", a);
  channels.drop("y", b);
}

TEST_CASE("back-off: pauses double up to the longest, half of each is random, and a seed replays") {
  room r, same;
  for (unsigned n = 1; n <= 40; ++n) {
    auto const full = std::min<std::int64_t>(1'000, 1'000 * (std::int64_t{1} << std::min(n - 1, 20u)) / 32);
    auto const pause = r.shared.pause(n, 1'000ms);
    CHECK(pause.count() >= full / 2);
    CHECK(pause.count() <= full);
    CHECK(same.shared.pause(n, 1'000ms) == pause);
  }
  CHECK(r.shared.pause(1, 1ms).count() == 1);
}

TEST_CASE("histogram: every time has its bucket") {
  histogram times;
  for (nanoseconds const took : {nanoseconds(-1), nanoseconds(0), nanoseconds(999)}) count(times, took);
  CHECK(times.buckets[0] == 3);
  count(times, 1us);
  CHECK(times.buckets[1] == 1);
  count(times, 1s);
  CHECK(times.buckets[20] == 1);
  CHECK(times.sum == 1'000'001);
  count(times, nanoseconds::max());
  CHECK(times.buckets[histogram::size - 1] == 1);
}

TEST_CASE("few: one has no memory of its own, and several are in order") {
  int of[4]{};
  few<int*> all;
  CHECK((all.empty() && all.capacity() == 1));
  all.push_back(&of[0]);
  CHECK((all.size() == 1 && all.capacity() == 1 && all.back() == &of[0]));
  all.erase(all.begin());
  CHECK((all.empty() && all.begin() == all.end()));
  for (int& one : of) all.push_back(&one);
  all.erase(all.begin() + 1);
  auto const copy = all;
  all.make_room();
  CHECK(all.capacity() > all.size());
  CHECK(std::vector(all.begin(), all.end()) == std::vector{&of[0], &of[2], &of[3]});
  CHECK((copy.size() == 3 && copy[2] == &of[3]));
  while (all.size() > 1) all.erase(all.begin());
  auto const last = all;
  CHECK((last.size() == 1 && last.capacity() == 1 && last[0] == &of[3]));
  all.erase(all.begin());
  CHECK((all.empty() && copy.size() == 3));
}

TEST_CASE("outbox: requests by their order, each once") {
  room r;
  home at(r.shared);
  outbox& box = at.requests;
  name_machine name(r.shared, at, reentrant_kind(), "k");
  owner_state a(name, 1), b(name, 2), c(name, 3);
  CHECK(box.empty());
  auto& spares = r.shared.spares.requests;
  a.ask_.begin(a, {.what = ask::acquire}, spares);
  b.ask_.begin(b, {.what = ask::release}, spares);
  c.ask_.begin(c, {.what = ask::hand_off}, spares);
  for (owner_state* one : {&a, &b, &c}) box.add(*one);
  CHECK(r.out.turn);
  CHECK(&box.of(outbox::acquires).front() == &a);
  CHECK(&box.of(outbox::releases).front() == &b);
  CHECK(&box.of(outbox::hand_offs).front() == &c);
  b.ask_.pending().what = ask::hand_off;  // a waiter came: it changes its place
  box.add(b);
  CHECK(box.of(outbox::releases).empty());
  CHECK(box.of(outbox::hand_offs).size() == 2);
  for (owner_state* one : {&a, &b, &c}) box.remove(*one);
  box.remove(a);
  CHECK(box.empty());
  operation plain;
  box.add(plain);
  CHECK_FALSE(box.empty());
  box.remove(plain);
  box.remove(plain);
  CHECK(box.empty());
}

}  // namespace machine_parts
