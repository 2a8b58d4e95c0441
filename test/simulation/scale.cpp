#include <simulation/randomness.hpp>
#include <simulation/scale_run.hpp>
#include <support/start_one.hpp>
#include <wire/cluster.hpp>
#include <wire/kinds.hpp>

#include <algorithm>
#include <utility>

namespace latchkey::scale {

namespace {

using namespace std::chrono_literals;
using detail::operation;

constexpr nanoseconds tenth = 100ms;
constexpr nanoseconds watched = 10s;   // before the death, and from the election on
constexpr nanoseconds beginning = 5s;  // in which callers come
constexpr milliseconds longest_release = 60s;
constexpr std::int64_t least_ms = 500, most_ms = 5'500;  // a caller's work, and then his pause

template <class Number>
Number most_of(std::vector<Number> const& all, std::size_t tenths, std::size_t from, std::size_t to) {
  Number best{};
  to = std::min(to, all.size());
  for (std::size_t i = from; i + tenths <= to; ++i) {
    Number sum{};
    for (std::size_t j = i; j < i + tenths; ++j) sum += all[j];
    best = std::max(best, sum);
  }
  return best;
}

}  // namespace

double sample::ms(double part) const {
  if (all.empty()) return 0;
  auto sorted = all;
  auto const at = std::min(all.size() - 1, static_cast<std::size_t>(part * static_cast<double>(all.size())));
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(at), sorted.end());
  return static_cast<double>(sorted[at].count()) / 1e6;
}

void load::add(nanoseconds at, nanoseconds cost) {
  auto const index = static_cast<std::size_t>(at / tenth);
  if (commands.size() <= index) commands.resize(index + 1), busy.resize(index + 1);
  ++commands[index];
  busy[index] += cost;
}

std::uint64_t load::most_commands(std::size_t tenths, std::size_t from, std::size_t to) const {
  return most_of(commands, tenths, from, to);
}

nanoseconds load::most_busy(std::size_t tenths, std::size_t from, std::size_t to) const {
  return most_of(busy, tenths, from, to);
}

// --- the run ---

scale_run::scale_run(wishes const& what) : what_(what), shards_(what.shards) {
  for (std::size_t i = 0; i <= shards_; ++i) add_site(i == shards_ ? failed : i);
  write_nodes();
  config settings;
  settings.client_name = "latchkey:simulated";
  for (std::uint32_t i = 0; i < what.clients; ++i) {
    detail::client_machine::identity who{"client" + std::to_string(i), {}, {}, 0, what.seed + i};
    for (std::size_t node = 0; node < std::min<std::size_t>(shards_, 3); ++node)
      who.nodes.push_back({std::to_string(node), 1});
    clients_.push_back(std::make_unique<client>(settings, std::move(who)));
  }
  // Every other name is kept by one; two clients take turns with each of the rest.
  locks_.resize(what.names);
  for (std::size_t i = 0; i < what.names; ++i) {
    lock& one = locks_[i];
    one.name = "order:" + std::to_string(i);
    one.shard = detail::slot_of(one.name) * shards_ / detail::slot_count;
    by_name_[one.name] = i;
    bool const kept = i % 2 == 0;
    auto const by = static_cast<std::uint32_t>(i / 2 % what.clients);
    auto const beside = static_cast<std::uint32_t>((by + 1 + drawn(1, i) % (what.clients - 1)) % what.clients);
    callers_.push_back({.client = by, .lock = i, .keeps = kept});
    if (!kept) callers_.push_back({.client = beside, .lock = i});
  }
  for (std::uint32_t i = 0; i < callers_.size(); ++i)
    post(event::type::acquire,
         now_ + nanoseconds(static_cast<std::int64_t>(drawn(2, i) % static_cast<std::uint64_t>(beginning.count()))), i);
}

std::uint64_t scale_run::drawn(std::uint64_t a, std::uint64_t b) { return simulation::mix(what_.seed, a, b); }

void scale_run::post(event::type what, instant at, std::size_t number) {
  events_.push({at, order_++, what, static_cast<std::uint32_t>(number)});
}

void scale_run::play_until(nanoseconds since_begin) {
  while (!events_.empty() && events_.top().at <= begin_ + since_begin) {
    event const next = events_.top();
    events_.pop();
    now_ = std::max(now_, next.at);
    act(next);
  }
  now_ = begin_ + since_begin;
}

void scale_run::act(event const& what) {
  switch (what.what) {
    case event::type::turn: return take_turn(what.number);
    case event::type::timer: return on_timer(what.number, what.at);
    case event::type::open: return open(what.number);
    case event::type::reached: return reached(what.number);
    case event::type::served: return serve(what.number);
    case event::type::heard: return heard(what.number);
    case event::type::ended: return ended(what.number);
    case event::type::acquire: return acquire(what.number);
    case event::type::release: return release(what.number);
    case event::type::closed: {
      wire& on = wires_[what.number];
      site& there = *sites_[on.site];
      if (on.scout || on.at == 0 || there.dead) return;
      there.queue.push_back({what.number, now_, true});
      if (!there.busy) serve(on.site);
    }
  }
}

figures scale_run::play() {
  play_until(milliseconds(what_.warm_up));
  die();
  play_until(found_.died + milliseconds(what_.elected_after));
  elect();
  play_until(found_.elected + watched);
  for (auto const& one : locks_) found_.forgotten += one.forgotten;
  auto const from = static_cast<std::size_t>((found_.died - watched) / tenth);
  auto const to = static_cast<std::size_t>(elapsed() / tenth);
  found_.master = sites_[failed]->worked;
  load const& next = sites_[shards_]->worked;
  found_.master.commands.resize(to + 1);
  found_.master.busy.resize(to + 1);
  for (std::size_t i = 0; i < std::min(next.commands.size(), to); ++i) {
    found_.master.commands[i] += next.commands[i];
    found_.master.busy[i] += next.busy[i];
  }
  for (std::size_t i = 1; i < shards_; ++i)
    if (load const& one = sites_[i]->worked; one.most_busy(10, from, to) > found_.other.most_busy(10, from, to))
      found_.other = one;
  return std::move(found_);
}

figures play(wishes const& what) { return scale_run(what).play(); }

// --- callers ---

std::unique_ptr<task> scale_run::made(std::uint32_t number, operation::type what) {
  auto one = std::make_unique<task>();
  one->what = what;
  one->which = &detail::reentrant_kind();
  one->name = locks_[callers_[number].lock].name;
  one->owner = number + 1;
  one->client = callers_[number].client;
  one->shown.of = one.get();
  one->started = now_;
  return one;
}

void scale_run::acquire(std::uint32_t number) {
  caller& by = callers_[number];
  by.gives.reset();
  by.asks = made(number, operation::type::acquire);
  by.asks->link = &by.asks->shown;
  ++locks_[by.lock].waiting;
  client& me = *clients_[by.client];
  test::start_one(me.machine, *by.asks, false, now_, me.out);
  perform(by.client);
}

void scale_run::release(std::uint32_t number) {
  caller& by = callers_[number];
  lock& of = locks_[by.lock];
  by.asks->ended = true;
  if (of.holder == by.asks.get()) of.holder = nullptr;
  of.freed = now_;
  by.gives = made(number, operation::type::release);
  by.gives->hold = by.asks->hold;
  client& me = *clients_[by.client];
  me.machine.unlink(*by.asks->which, by.asks->name, by.asks->owner, by.asks->hold);
  by.gives->deadline = detail::after(now_, longest_release);
  test::start_one(me.machine, *by.gives, false, now_, me.out);
  perform(by.client);
}

void scale_run::completed(task& done) {
  ++done.completions;
  auto const number = static_cast<std::uint32_t>(done.owner - 1);
  if (done.what == operation::type::release)
    found_.gave_up += static_cast<bool>(done.error);
  else
    found_.failed_calls += done.error || !done.yes;
  bool const has = done.what == operation::type::acquire && done.yes;
  if (done.what == operation::type::acquire) --locks_[callers_[number].lock].waiting;
  if (has) granted(number);
  if (has && callers_[number].keeps) return;
  auto const length = least_ms + static_cast<std::int64_t>(drawn(order_, number) % (most_ms - least_ms));
  post(has ? event::type::release : event::type::acquire, now_ + milliseconds(length), number);
}

void scale_run::granted(std::uint32_t number) {
  task const& by = *callers_[number].asks;
  lock& of = locks_[callers_[number].lock];
  ++found_.grants;
  found_.two_holders += of.holder && of.holder->trusted(now_);
  of.holder = &by;
  if (of.shard != failed) return;
  instant const elected = begin_ + found_.elected;
  nanoseconds const idle = now_ - std::max({of.freed, by.started, elected_ ? elected : begin_});
  if (elected_ && found_.first_grant == 0ns) found_.first_grant = elapsed() - found_.died;
  if (elected_ && std::exchange(of.forgotten, false)) found_.granted.add(elapsed() - found_.died);
  if (elected_)
    found_.idle.add(idle);
  else if (!died_ && elapsed() > milliseconds(what_.warm_up) - watched)
    found_.idle_before.add(idle);
}

}  // namespace latchkey::scale
