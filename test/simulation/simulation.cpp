#include <simulation/simulation.hpp>

#include <algorithm>

namespace latchkey::simulation {

namespace {

constexpr std::int64_t server_epoch = 1'700'000'000'000;  // what the server's clock shows at the beginning
constexpr char const* lock_names[] = {"k", "other"};
constexpr char const* member_names[] = {"a", "b", "c"};

config settings_of(std::uint64_t seed, bool turns) {
  dice chances(mix(seed, 11));
  constexpr std::int64_t leases[] = {300, 1'000, 3'000, 30'000};
  constexpr std::int64_t timeouts[] = {300, 1'000, 3'000};
  constexpr std::int64_t pings[] = {0, 1'000, 5'000, 30'000};
  constexpr int streaks[] = {0, 1, 3, 64};
  config made;
  made.lock_watchdog_timeout = milliseconds(chances.of(leases));
  made.timeout = milliseconds(chances.of(timeouts));
  made.connect_timeout = milliseconds(chances.of(timeouts));
  made.ping_interval = milliseconds(chances.of(pings));
  made.retry_delay = milliseconds(chances.between(20, 1'000));
  made.retry_attempts = static_cast<int>(chances.below(5));
  made.local_handoff.max_streak = chances.of(streaks);
  constexpr std::int64_t lines[] = {1'000, 5'000, 300'000};
  made.fair_lock_wait_timeout = milliseconds(chances.of(lines));
  made.local_handoff.max_time = milliseconds(chances.between(1, 50));
  made.local_turns = turns && mix(seed, 51) % 4 != 0;
  constexpr int warm_ups[] = {0, 0, 1, 4};
  made.local_handoff.warm_up = warm_ups[mix(seed, 52) % 4];
  return made;
}

}  // namespace

simulation::node::node(config const& settings, std::string name, std::size_t index)
    : id(std::move(name)), number(index), machine(settings, {id, {}, {}, 0, index + 1}) {}

simulation::simulation(run_options const& options, lua_scripts& scripts)
    : options_(options),
      kind_(*options.kind),
      settings_(settings_of(options.seed, options.turns)),
      network_(options.seed, options.jitter, options.split, *this),
      plan_(options.seed) {
  dice chances(mix(options.seed, 12));
  std::size_t const clients = options.clients != 0 ? options.clients : 1 + chances.below(3);
  std::int64_t const most_ppm = most_ppm_ = options.drift && chances.one_in(2) ? 500 : 0;
  constexpr server::handle handles = 1u << 24;  // of each server
  std::size_t const places = kind_.joint() ? *std::max_element(kind_.places.begin(), kind_.places.end()) + 1 : 1;
  for (server::handle i = 0; i < places; ++i) {
    sites_.push_back(std::make_unique<site>(scripts, *this, i * handles + 1));
    sites_.back()->clock = {server_epoch * 1'000'000, chances.between(-most_ppm, most_ppm)};
  }
  for (std::size_t i = 0; i < clients; ++i) add_process();
  moment const longest_lease = ms(40'000);
  lost_rate_ = most_ppm == 0 ? 0 : longest_lease / 1'000'000 * (2 * most_ppm + 2);
  recovery_ = ms((settings_.lock_watchdog_timeout + settings_.ping_interval + 3 * settings_.timeout +
                  3 * settings_.connect_timeout + 6 * settings_.retry_delay)
                     .count()) +
              40 * network_.longest_way();
  recovery_ = std::max(recovery_, ms(kind_.which.rules().hint_most + 100));
  for (auto const& [script, name] : kind_.scripts()) script_names_.emplace(script->sha(), name);
  set_server_clocks();
  set_rates();
  if (chances.one_in(4)) retakes_ = 40;
  if (options_.planted) plant(*options_.planted);
  for (std::size_t i = 0; i < kind_.places.size(); ++i) {
    auto& lock = locks_.emplace_back();
    lock.name = member_names[i];
    lock.place = kind_.places[i];
  }
  if (!kind_.joint())
    for (char const* name : lock_names) {
      locks_.emplace_back().name = name;
      stock_again(locks_.back());
    }
}

simulation::~simulation() = default;

// A process has a client for each server. Ids differ in a hexadecimal digit, as those of permits begin with the digits
// of their client's.
void simulation::add_process() {
  constexpr std::string_view digits = "ABCDEF0123456789";
  std::size_t const first = nodes_.size();
  dice chances(mix(options_.seed, 23, first));
  drifting_clock const clock{chances.between(ms(1'000), ms(1'000'000)), chances.between(-most_ppm_, most_ppm_)};
  for (std::size_t place = 0; place < sites_.size(); ++place) {
    std::size_t const number = nodes_.size();
    nodes_.push_back(std::make_unique<node>(client_settings(), std::string("client") + digits[number], number));
    nodes_.back()->clock = clock;
    nodes_.back()->place = place;
    nodes_.back()->process = first / sites_.size();
  }
}

void simulation::fail(std::string const& why, eye by) const { throw violation(why, by); }

std::string simulation::shown_time(moment t) const {
  char made[32];
  std::snprintf(made, sizeof made, "%9.3f ms  ", static_cast<double>(t) / 1e6);
  return made;
}

void simulation::remember(std::string line) { history_.push_back(shown_time(now_) + std::move(line)); }

void simulation::set_server_clocks() {
  for (auto& one : sites_) {
    std::int64_t const shown = one->clock.at(now_);
    one->at.data.now = shown / 1'000'000;
    one->at.data.microseconds = shown / 1'000;
  }
}

void simulation::run() {
  next_move_ = plan_.next();
  while ((options_.only || steps_ - sick_steps_ < options_.steps) && step(true)) {
  }
  end_of_moves_ = options_.only ? options_.end : now_ + 1;
  finish();
}

// The earliest time at which a client, or a caller of it, has something to do by its own clock.
moment simulation::next_timer(std::size_t& client) const {
  moment next = endless;
  auto const at = [&](std::size_t whose, moment t) {
    t = std::max({t, nodes_[whose]->paused_until, now_});
    if (t >= next) return;
    next = t;
    client = whose;
  };
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    node const& me = *nodes_[i];
    if (me.gone) continue;
    instant const wake = me.machine.wake_at();
    if (wake != detail::never) at(i, true_time(me, wake));
    for (auto const& one : me.loans) at(i, std::max(one.end, me.borrower_back));
  }
  for (auto const& one : joints_) {
    if (one->gone) continue;
    std::size_t const whose = client_of(*one, 0);
    if (one->sleeps_until != detail::never) at(whose, true_time(*nodes_[whose], one->sleeps_until));
    if (one->holds() && kind_.majority) at(whose, true_time(*nodes_[whose], one->hold.until()));
  }
  for (task const* one : open_)
    if (one->self_timed && one->deadline != detail::never) {
      node const& me = *nodes_[one->client];
      if (!me.lent_to(one))  // else it looks at the lane and not at its clock
        at(one->client, std::max(true_time(me, one->deadline), me.borrower_back));
    }
  return next;
}

void simulation::serve_timers(std::size_t client) {
  node& me = *nodes_[client];
  instant const now = client_time(me);
  ++wakes_;
  while (me.borrower_back <= now_) {
    auto const late = std::find_if(me.loans.begin(), me.loans.end(), [&](loan const& one) { return one.end <= now_; });
    if (late == me.loans.end()) break;
    tell([&] { return me.id + ": no answer on the direct lane in time"; });
    lane_over(client, late->serial, errc::timeout);
  }
  if (me.machine.wake_at() <= now) {
    me.machine.time(now, me.out);
    perform(client);
  }
  for (std::size_t i = 0; i < joints_.size(); ++i) {
    joint_call& one = *joints_[i];
    if (one.gone || client_of(one, 0) != client || one.sleeps_until > now) continue;
    one.sleeps_until = detail::never;
    one.decides.time(now);
    perform_joint(one);
  }
  if (me.borrower_back > now_) return;
  for (std::size_t i = 0; i < open_.size();) {
    task& one = *open_[i];
    if (one.client != client || !one.self_timed || me.lent_to(&one) || one.deadline > now) {
      ++i;
      continue;
    }
    me.machine.expire(one, now, me.out);
    perform(client);
    i = !one.done() ? i + 1 : 0;
  }
}

// One event; time moves to where it is. False: there is none, or the moves are over.
bool simulation::step(bool with_moves) {
  std::size_t client = 0;
  moment const timer = next_timer(client);
  moment next = std::min(network_.next(), timer);
  if (with_moves && options_.only) {
    auto const& only = *options_.only;
    while (next_move_ && !std::binary_search(only.begin(), only.end(), next_move_->number) &&
           next_move_->at < options_.end)
      next_move_ = plan_.next();
  }
  bool const sick = any_sick();
  constexpr unsigned few = 8;
  while (with_moves && sick && next_move_->number % few != 0) next_move_ = plan_.next();
  bool const moves = with_moves && next_move_->at <= next;
  if (moves) next = next_move_->at;
  if (with_moves && next >= options_.end) {
    now_ = std::max(now_, options_.end);
    return false;
  }
  if (next == endless) return false;
  now_ = std::max(now_, next);
  set_modes();
  set_server_clocks();
  ++steps_;
  numbers_.begin_step();
  numbers_.add(static_cast<std::uint64_t>(now_));
  sick_steps_ += sick;
  if (moves) {
    move const one = *next_move_;
    next_move_ = plan_.next();
    made_.push_back(one);
    act(one);
  } else if (timer <= network_.next()) {
    serve_timers(client);
  } else {
    event const what = network_.take();
    bool const at_server = what.what == event::type::to_server;
    node& me = *nodes_[what.client];
    if (me.gone && !at_server) return true;
    moment held = at_server ? 0 : me.paused_until;
    if (at_server) held = at(me).stalled_until;
    if (what.what == event::type::to_client && me.loan_of(network_.at(what.number).serial))
      held = std::max(held, me.borrower_back);
    if (held > now_) {
      network_.post_again(what, held);
      return true;
    }
    switch (what.what) {
      case event::type::turn: take_turn(what.client); break;
      case event::type::open: opened(what.client, what.number); break;
      default: network_.deliver(what, now_);
    }
  }
  if (kind_.joint()) serve_joints();
  if (!greedy_.empty()) retake();
  if (options_.planted) play_tricks();
  check();
  return true;
}

}  // namespace latchkey::simulation
