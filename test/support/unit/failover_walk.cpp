#include <support/unit/failover_walk.hpp>
#include <support/unit/transfers.hpp>
#include <wire/kinds.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace latchkey::test {

using namespace std::chrono_literals;

namespace {

config settings_of(int needed, std::uint64_t seed) {
  config made;
  made.lock_watchdog_timeout = 3s;
  made.timeout = 1s;
  made.connect_timeout = 1s;
  made.retry_delay = 100ms;
  made.scan_interval = 1s;
  made.replicas_sync_timeout = 500ms;
  made.check_lock_synced_replicas = needed != failover_walk::unasked;
  if (made.check_lock_synced_replicas) made.min_synced_replicas = needed;
  made.clock_margin = failover_walk::most_skew;
  made.local_turns = seed / 8 % 2 == 1;
  made.local_handoff = {.max_streak = 3, .max_time = 50ms, .warm_up = warm_ups[seed / 16 % warm_ups.size()]};
  return made;
}

detail::kind const& kind_of(std::uint64_t seed) {
  detail::kind const* const all[] = {&detail::reentrant_kind(),  &detail::non_reentrant_kind(), &detail::spin_kind(),
                                     &detail::fenced_kind(),     &detail::plain_kind(),         &detail::fair_kind(),
                                     &detail::read_write_kind(), &detail::reentrant_kind()};
  return *all[seed % std::size(all)];
}

}  // namespace

bool lost_more_than_releases(model::keyspace& was, model::keyspace& copy) {
  auto const keys = was.keys();
  return std::any_of(keys.begin(), keys.end(), [&](auto const& key) {
    auto const *there = was.find(key), *copied = copy.find(key);
    return !copied || copied->ends != there->ends || copied->holds != there->holds;
  });
}

failover_walk::failover_walk(std::uint64_t seed, int needed, bool exclusive, world::known how)
    : w_(settings_of(needed, seed), clients, how), kind_(kind_of(seed)), all_confirm_(needed < 0) {
  if (seed / 64 % 4 == 1) adoptions_.emplace(w_, kind_, names, clients);
  w_.any_order = seed * 2 + 1;
  w_.faulty = true;
  w_.late_bytes = false;
  w_.exclusive = exclusive;
}

void failover_walk::play() {
  for (int i = 0; i < moves; ++i) {
    if (adoptions_) adoptions_->take_up();
    switch (w_.random(12)) {
      case 0:
      case 1: call(); break;
      case 2: fault(); break;
      case 3:
      case 4: befall_servers(); break;
      case 5:
        if (w_.random(2) == 0) w_.wait_for_next();
        break;
      default:
        for (auto steps = w_.random(most_steps); steps > 0; --steps) step();
    }
    look();
  }
  granted_ = granted(task::type::acquire);
  end();
}

void failover_walk::watch(stepped_server& one) {
  one.redis.replicas = replicas;
  one.elsewhere = [this, &one, usual = one.elsewhere](stepped_server::words const& command, bool asking) {
    auto said = before(one, command);
    return said.empty() && usual ? usual(command, asking) : said;
  };
}

void failover_walk::promote_to(stepped_server& next, stepped_server const& from, model::keyspace const& copy) {
  ++failovers_;
  auto const ahead = clock_of(next) - clock_of(from);
  next.redis.data = copy;
  for (auto const& key : next.redis.data.keys())
    if (auto* const found = next.redis.data.find(key); found && found->ends != model::keyspace::forever)
      found->ends -= ahead;
}

bool failover_walk::step() {
  bool const any = w_.step();
  look();
  return any;
}

void failover_walk::look() {
  if (all_confirm_) look_at_masters();
}

std::size_t failover_walk::granted(task::type what) const {
  auto const& all = w_.tasks();
  return static_cast<std::size_t>(
      std::count_if(all.begin(), all.end(), [&](auto const& one) { return one->what == what && one->granted(); }));
}

void failover_walk::look_at_masters() {
  std::map<std::pair<std::string, std::string>, std::int64_t> counts;  // by key and field
  for (auto const& one : w_.tasks()) {
    stepped_server* const master = one->trusted(w_.now) ? master_of(one->key) : nullptr;
    if (!master) continue;
    detail::kind const& which = *one->which;
    auto const field = transfers::shown_field(w_, *one);
    auto& count = ++counts[{one->key, field}];
    if (w_.settings.local_turns && which.rules().turns) count = 1;
    if (master->count(one->key, field) < count) w_.fail("the master has fewer holds than believed of " + one->label);
    // A clock that is ahead may have taken something off what no renewal has put right yet.
    if (detail::after(master->last_instant(one->key), most_skew) < one->shown.until())
      w_.fail("the master forgets the hold of " + one->label);
  }
}

void failover_walk::call() {
  if (adoptions_ && w_.random(2) == 0) return adoptions_->call();
  std::uint64_t const owner = 1 + w_.random(3);
  how options{.which = &kind_};
  if (kind_.rules().modes > 1) options.mode = static_cast<unsigned char>(w_.random(2));
  options.name = names[w_.random(names.size())];
  options.client = w_.random(clients);
  options.direct = w_.random(3) == 0;
  if (w_.random(3) == 0) options.wait = milliseconds(w_.random(6'000));
  if (w_.random(3) == 0) options.lease = milliseconds(400 + w_.random(8'000));
  call_at_random(
      w_, owner, [&] { return options; }, 20'000);
}

void failover_walk::fault() {
  if (w_.random(3) > 0) return;
  constexpr fate fates[] = {fate::gone, fate::ran, fate::late, fate::silent};
  auto const as = static_cast<role>(w_.random(4));
  w_.lose(as, as == role::scout ? fate::gone : fates[w_.random(4)], w_.random(clients));
}

void failover_walk::end() {
  heal();
  for (auto const& one : w_.tasks())  // or what is left ends while they wait
    if (waits(*one) && w_.random(4) > 0) w_.cancel(*one);
  w_.late_bytes = true;
  w_.resolve();
  // What was detached ends by time, and what was adopted and released may be there again until then.
  if (adoptions_) w_.pass(longest_lease + 1s);
  // Whoever has nothing to do with a server does not ask who it is; then each has heard of the last failover.
  std::vector<task*> all;
  for (std::size_t i = 0; i < clients; ++i)
    for (std::string const name : {"{k}w", "{other}w"})
      all.push_back(&w_.acquire(8, {.name = name + std::to_string(i), .client = i}));
  for (task* one : all) w_.await(*one);
  w_.pass(1'100ms);
  for (task* one : all) w_.release(*one);
  w_.resolve();
  look_for_ghosts();
  for (std::size_t i = 0; i < clients; ++i)
    for (auto const* name : names) {
      task& last = w_.acquire(9, {.name = name, .client = i, .which = &kind_, .mode = kind_.rules().modes > 1});
      w_.await(last);
      w_.release(last);
    }
  w_.resolve();
  look_for_ghosts();
}

void failover_walk::look_for_ghosts() {
  for (auto const& left : ghosts()) w_.fail("a ghost is left: " + left);
}

std::int64_t failover_walk::clock_of(stepped_server const& one) {
  auto const [at, added] = clocks_.try_emplace(&one);
  if (added) at->second = static_cast<std::int64_t>(w_.random(static_cast<std::uint64_t>(most_skew.count()) + 1));
  return at->second;
}

}  // namespace latchkey::test
