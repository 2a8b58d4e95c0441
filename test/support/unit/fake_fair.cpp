#include <support/unit/fake_fair.hpp>

#include <wire/fair_scripts.hpp>
#include <wire/reentrant_scripts.hpp>
#include <wire/verdict.hpp>

#include <algorithm>

namespace latchkey::test {

using detail::verdict;

namespace {

constexpr std::int64_t grace = 700;
constexpr std::int64_t near = 8;  // places from the head
constexpr std::int64_t farthest_look = 10'000;

reply meaning(verdict what) { return integer(static_cast<std::int64_t>(what)); }

std::int64_t now_of(fake_server& server) {
  return std::chrono::floor<milliseconds>(server.store.now().time_since_epoch()).count();
}

void take_off(fake_fair::waiter& one, std::int64_t line_time, std::int64_t now) {
  one.score = std::max(one.score - line_time, std::min(one.score, now + grace));
}

template <class Item>
script_body items_of(std::size_t arguments_each, Item item) {
  return [=](script_world&, words_view keys, words_view arguments) {
    std::vector<reply> made;
    for (std::size_t i = 0; (i + 1) * 4 <= keys.size(); ++i)
      made.push_back(item(keys.subspan(i * 4, 4), arguments.subspan(i * arguments_each, arguments_each)));
    return array(std::move(made));
  };
}

}  // namespace

void fake_fair::teach(fake_server& server) {
  auto* const at = &server;
  server.teach(detail::fair_acquire(), "fair_acquire",
               items_of(5, [this, at](words_view k, words_view a) { return acquire(*at, k, a); }));
  server.teach(detail::fair_release(), "fair_release",
               items_of(3, [this, at](words_view k, words_view a) { return release(*at, k, a); }));
  server.teach(detail::fair_hand_off(), "fair_hand_off",
               items_of(5, [this, at](words_view k, words_view a) { return hand_off(*at, k, a); }));
  server.teach(detail::fair_force_unlock(), "fair_force_unlock",
               items_of(0, [this, at](words_view k, words_view) { return force_unlock(*at, k); }));
  server.teach(detail::fair_leave(), "fair_leave",
               items_of(2, [this, at](words_view k, words_view a) { return leave(*at, k, a); }));
}

std::string fake_fair::shown(std::string const& key) {
  std::string made;
  for (auto const& one : of(key)) made += (made.empty() ? "" : " ") + one.field;
  return made;
}

bool fake_fair::evict(fake_server& server, line& waiting) {
  bool evicted = false;
  for (; !waiting.empty() && waiting.front().score <= now_of(server); evicted = true) waiting.pop_front();
  return evicted;
}

void fake_fair::tell(fake_server& server, words_view keys, std::string const& teller) {
  for (auto& one : of(keys[0])) {
    if (one.field == teller) return;
    auto const channel = keys[3] + ":" + one.field;
    bool const heard = server.subscribers(channel) > 0;
    server.publish(channel, "0");
    if (heard) return;
    one.score = std::min(one.score, now_of(server) + grace);
  }
}

reply fake_fair::acquire(fake_server& server, words_view keys, words_view a, bool told) {
  auto& store = server.store;
  auto const& key = keys[0];
  auto const& field = a[0];
  std::int64_t const target = std::stoll(a[1]), lease = std::stoll(a[2]), line_time = std::stoll(a[3]);
  auto& waiting = of(key);
  auto const me = [&] {
    return std::find_if(waiting.begin(), waiting.end(), [&](auto& o) { return o.field == field; });
  };
  if (store.has(key, field)) {
    if (target == 1 || store.ttl(key) < lease) store.expire(key, lease);
    store.set(key, field, target);
    return meaning(verdict::granted);
  }
  if (target > 1) return meaning(verdict::gone);
  evict(server, waiting);
  bool const free = !store.find(key);
  if (free && (waiting.empty() || waiting.front().field == field)) {
    if (!waiting.empty()) {
      waiting.pop_front();
      for (auto& other : waiting) take_off(other, line_time, now_of(server));
    }
    store.set(key, field, 1);
    store.expire(key, lease);
    return meaning(verdict::granted);
  }
  std::int64_t place = 0;
  if (a[4] == "1") {
    auto it = me();
    place = it - waiting.begin();
    bool const first = it == waiting.begin();
    auto const before = first || waiting.empty() ? now_of(server) + store.ttl(key) : std::prev(it)->score;
    auto const score = std::max(before, now_of(server)) + line_time;
    if (it == waiting.end())
      waiting.push_back({field, score});
    else
      it->score = std::max(it->score, score);
  }
  if (free && !told) tell(server, keys, field);
  if (place >= near) return integer(std::min({free ? 1'000 + 25 * place : 125 * place, farthest_look, line_time / 3}));
  return integer(free ? 20 : std::min<std::int64_t>(store.ttl(key), 500));
}

reply fake_fair::release(fake_server& server, words_view keys, words_view a) {
  auto& store = server.store;
  auto const& key = keys[0];
  if (!store.has(key, a[0])) {
    if (!store.find(key)) {
      evict(server, of(key));
      tell(server, keys);
    }
    return meaning(verdict::absent);
  }
  if (std::stoll(a[1]) > 0) {
    store.expire(key, std::stoll(a[2]));
    store.set(key, a[0], std::stoll(a[1]));
    return meaning(verdict::still_held);
  }
  store.remove(key);
  evict(server, of(key));
  tell(server, keys);
  return meaning(verdict::released);
}

// A release, and a try of the other one in the same breath.
reply fake_fair::hand_off(fake_server& server, words_view keys, words_view a) {
  auto& waiting = of(keys[0]);
  std::vector<std::string> const from{a[0], "0", "0"}, to{a[1], "1", a[2], a[3], a[4]};
  evict(server, waiting);
  bool const turn = waiting.empty() || waiting.front().field == a[1];
  if (server.store.has(keys[0], a[0]) && turn) {
    server.store.remove(keys[0]);
    acquire(server, keys, to);
    return array({meaning(verdict::released), meaning(verdict::granted)});
  }
  bool const holds = server.store.has(keys[0], a[0]);
  reply const old = holds ? release(server, keys, from) : meaning(verdict::absent);
  return array({old, acquire(server, keys, to, holds)});
}

reply fake_fair::force_unlock(fake_server& server, words_view keys) {
  bool const there = server.store.remove(keys[0]);
  evict(server, of(keys[0]));
  tell(server, keys);
  return meaning(there ? verdict::released : verdict::absent);
}

reply fake_fair::leave(fake_server& server, words_view keys, words_view a) {
  auto& waiting = of(keys[0]);
  auto it = std::find_if(waiting.begin(), waiting.end(), [&](auto& o) { return o.field == a[0]; });
  bool const there = it != waiting.end(), first = there && it == waiting.begin();
  if (there) {
    for (auto behind = std::next(it); behind != waiting.end(); ++behind)
      take_off(*behind, std::stoll(a[1]), now_of(server));
    waiting.erase(it);
  }
  bool const evicted = evict(server, waiting);
  if ((first || evicted) && !server.store.find(keys[0])) tell(server, keys);
  return meaning(there ? verdict::released : verdict::absent);
}

}  // namespace latchkey::test
