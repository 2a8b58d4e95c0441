#include <simulation/simulation.hpp>

#include <algorithm>

namespace latchkey::simulation {

using action = detail::joint_acquire::action;
using answer = detail::joint_acquire::answer;
using trick = planted_fault::trick;

namespace {

constexpr std::uint64_t joint_owners = 3;  // of each process

}  // namespace

std::size_t simulation::client_of(joint_call const& one, std::size_t member) const {
  return one.process * sites_.size() + kind_.places[member];
}

bool simulation::is_planted(trick what) const { return options_.planted && options_.planted->what == what; }

// --- what callers do ---

// False: such a caller knows no such call.
bool simulation::act_on_joints(move const& one, dice& chances) {
  switch (one.what) {
    case deed::acquire:
    case deed::try_once: begin_joint(chances, one.what == deed::try_once); return true;
    case deed::release:
    case deed::unlock:
    case deed::drop:
      if (joint_call* const held = any_joint(chances, true)) end_joint(*held, one.what == deed::drop, chances);
      return true;
    case deed::extend:
      if (joint_call* const held = any_joint(chances, true)) extend_joint(*held, chances);
      return true;
    case deed::cancel: {
      joint_call* const asks = any_joint(chances, false);
      if (!asks) return true;
      tell([&] { return asks->label + " is cancelled"; });
      asks->decides.cancel(cancelled(), joint_time(*asks));
      perform_joint(*asks);
      return true;
    }
    case deed::query: return true;
    default: return false;
  }
}

error_code simulation::cancelled() {
  return boost::system::errc::make_error_code(boost::system::errc::operation_canceled);
}

instant simulation::joint_time(joint_call const& one) const { return client_time(*nodes_[client_of(one, 0)]); }

joint_call* simulation::any_joint(dice& chances, bool held) const {
  std::vector<joint_call*> fits;
  for (auto const& one : joints_)
    if ((held ? one->granted && !one->hold.ended() && !one->gone : one->completions == 0) && awake(client_of(*one, 0)))
      fits.push_back(one.get());
  return fits.empty() ? nullptr : fits[chances.below(fits.size())];
}

detail::joint_rules simulation::joint_rules_of(milliseconds lease) const {
  std::vector<detail::joint_rules::member> members;
  for (std::size_t i = 0; i < kind_.places.size(); ++i) members.push_back({locks_[i].name, kind_.places[i] + 1});
  auto made = kind_.majority ? detail::joint_rules::majority_of(members.size()) : detail::joint_rules::all_of(members);
  if (is_planted(trick::minority)) made.quorum = 1;
  return made.with_lease(lease.count() > 0 ? lease : settings_.lock_watchdog_timeout);
}

void simulation::begin_joint(dice& chances, bool once) {
  std::size_t const process = nodes_[any_client(chances)]->process;
  std::size_t const client = process * sites_.size();
  std::uint64_t const owner = 1 + chances.below(joint_owners);
  if (!awake(client)) return;
  instant const now = client_time(*nodes_[client]);
  milliseconds lease{0};
  if (chances.one_in(3)) lease = milliseconds(200 + static_cast<std::int64_t>(chances.below(8'000)));
  instant deadline = detail::never;
  if (once)
    deadline = budget_end(now);
  else if (chances.one_in(2))
    deadline = detail::after(now, milliseconds(chances.below(6'000)));
  joint_call& one = *joints_.emplace_back(
      std::make_unique<joint_call>(joint_rules_of(lease), detail::joint_acquire::wish{deadline, once, chances.any()}));
  one.started = now;
  one.lease = lease;
  one.deadline = deadline;
  if (lease.count() == 0 && chances.one_in(6)) one.max_hold = milliseconds(chances.between(100, 5'000));
  one.process = process;
  one.owner = owner;
  one.label = "joint " + std::to_string(joints_.size()) + " of process " + std::to_string(process) + ":" +
              std::to_string(owner);
  tell([&] {
    return one.label + " begins" +
           (once                        ? ", once"
            : deadline == detail::never ? ", for ever"
                                        : ", for a while") +
           (lease.count() > 0 ? ", lease " + std::to_string(lease.count()) + " ms" : ", watchdog");
  });
  one.decides.begin(now);
  perform_joint(one);
}

void simulation::end_joint(joint_call& one, bool drop, dice& chances) {
  one.hold.end();
  tell([&] { return one.label + (drop ? " is dropped" : " is released"); });
  one.decides.cancel(cancelled(), joint_time(one));  // who is still asked is not wanted any more
  perform_joint(one);
  for (auto const& part : one.hold.take()) {
    task& asked = *part->asked;
    if (!asked.ended) end_hold(asked, drop || part->trust.lost() || nodes_[asked.client]->machine.closed(), chances);
  }
}

void simulation::extend_joint(joint_call& one, dice& chances) {
  if (one.hold.lost()) return;
  milliseconds const lease(chances.between(200, 40'000));
  tell([&] { return one.label + " is extended to " + std::to_string(lease.count()) + " ms"; });
  for (auto const& part : one.hold.parts()) {
    task* const asked = part->asked;
    if (asked->ended || part->trust.lost()) continue;
    part->trust.extending(one.rules.drift(lease));
    task& call = made(task::type::extend, asked->client, asked->owner, asked->key);
    call.hold = asked->hold;
    call.lease = lease;
    longest_[asked] = std::max(longest_[asked], lease);
    extended_.insert(asked);
    extensions_[&call] = part;
    start(call);
  }
}

// --- what is decided ---

void simulation::perform_joint(joint_call& one) {
  if (std::exchange(one.performing, true)) return;
  while (auto const what = one.decides.take()) perform_joint(one, *what);
  one.performing = false;
}

void simulation::perform_joint(joint_call& one, action const& what) {
  using type = action::type;
  dice chances(mix(options_.seed, 29, steps_));
  auto const part = [&] { return one.asked.at(what.of[0].id); };
  switch (what.what) {
    case type::ask:
    case type::wait: return ask_members(one, what);
    case type::cancel: {
      task& asked = *part()->asked;
      node& me = *nodes_[asked.client];
      if (asked.done()) return;
      me.machine.cancel(asked, client_time(me), me.out);
      return perform(asked.client);
    }
    case type::give_back:
      if (is_planted(trick::keeps_members)) return;
      if (!part()->asked->ended) end_hold(*part()->asked, true, chances);
      return;
    case type::keep:
      if (!one.holds() || !one.hold.add(part())) end_hold(*part()->asked, true, chances);
      return;
    case type::sleep: one.sleeps_until = what.when; return;
    case type::finish: return conclude_joint(one);
  }
}

void simulation::ask_members(joint_call& one, action const& what) {
  bool const waits = what.what == action::type::wait;
  bool const bundled = what.of.size() > 1 && !kind_.majority;
  if (bundled) ++last_bundle_;
  std::vector<task*> all;
  for (auto const& [member, id] : what.of) {
    std::size_t const client = client_of(one, member);
    task& asked = made(task::type::acquire, client, one.owner, locks_[member].name);
    asked.link = &asked.shown;
    asked.once = !waits;
    asked.started = one.started;
    asked.deadline = waits ? what.when : std::min(asked.deadline, what.when);
    asked.member = true;
    asked.comes_back = what.comes_back;
    if (bundled) asked.bundle = last_bundle_;
    asked.lease = one.lease;
    asked.max_hold = one.max_hold;
    asked.line_time = settings_.fair_lock_wait_timeout;
    for (std::uint64_t other = 1; other <= joint_owners; ++other)
      if (other != one.owner && nodes_[client]->machine.keeps_out(kind_.which, asked.key, other, asked.mode))
        behind_ours_.insert(&asked);
    longest_[&asked] = asked.lease.count() > 0 ? asked.lease : settings_.lock_watchdog_timeout;
    milliseconds term = asked.lease.count() > 0 ? asked.lease : settings_.lock_watchdog_timeout;
    if (asked.max_hold.count() > 0) term = std::min(term, asked.max_hold);
    one.asked[id] = std::make_shared<joint_part>(joint_part{&asked, {asked.shown, one.rules.drift(term)}});
    part_of_[&asked] = {&one, id};
    all.push_back(&asked);
  }
  if (!bundled) {
    for (task* const asked : all) start(*asked);
    return;
  }
  dice chances(mix(options_.seed, 41, steps_));
  all.front()->direct = chances.one_in(2);
  start(*all.front(), std::span(all).subspan(1));
}

// A member has answered. Decides nothing by itself: calls to the machines wait until they are done with this one.
void simulation::serve_joints() {
  for (std::size_t i = 0; i < joint_answers_.size(); ++i) {
    task& done = *joint_answers_[i];
    auto const [one, id] = part_of_.at(&done);
    if (one->gone) continue;
    answer said;
    if (done.error)
      said = {answer::type::failed, {}, done.error, done.text};
    else if (done.yes)
      said = {answer::type::granted, one->asked.at(id)->trust.until(), {}, {}};
    else
      said.what = done.untried ? answer::type::untried : answer::type::busy;
    one->told_busy = one->told_busy || said.what == answer::type::busy;
    one->decides.answered(id, said, joint_time(*one));
    perform_joint(*one);
  }
  joint_answers_.clear();
  for (auto const& one : joints_)
    std::erase_if(one->asked, [](auto const& it) {
      task const& asked = *it.second->asked;
      return asked.done() && (!asked.yes || asked.ended);
    });
  for (auto const& one : joints_) {
    if (!one->holds() || !awake(client_of(*one, 0))) continue;
    bool const over = kind_.majority && one->hold.until() <= joint_time(*one);
    if (one->hold.too_few() || over) lose_joint(*one);
  }
}

void simulation::conclude_joint(joint_call& one) {
  dice chances(mix(options_.seed, 31, steps_));
  ++one.completions;
  one.sleeps_until = detail::never;
  one.granted = one.decides.granted();
  std::vector<joint_call::part> parts;
  for (auto const& [member, id] : one.decides.held()) parts.push_back(one.asked.at(id));
  if (one.granted && !one.hold.begin(parts)) {
    one.granted = false;
    for (auto const& part : one.hold.take()) end_hold(*part->asked, true, chances);
  }
  auto const error = is_planted(trick::hides_errors) ? error_code() : one.decides.error();
  tell([&] {
    return one.label + (one.granted ? " is granted" : error ? " ends: " + error.message() : " is told: busy");
  });
  if (one.completions > 1) fail(one.label + " was completed twice");
  if (now_ > limit_of(one)) fail(one.label + " ends late: " + shown_time(limit_of(one)), eye::late);
  if (!one.granted && one.decides.granted()) return;  // lost meanwhile
  if (!one.granted && !error && !one.told_busy)
    fail(one.label + " was told that the lock is busy, though no member said so");
}

// Too few members are left, or their time is over: the others are given back.
void simulation::lose_joint(joint_call& one) {
  one.hold.lose();
  tell([&] { return one.label + " is told that its hold is lost"; });
  dice chances(mix(options_.seed, 37, steps_));
  one.decides.cancel(cancelled(), joint_time(one));
  perform_joint(one);
  for (auto const& part : one.hold.take())
    if (!part->asked->ended) end_hold(*part->asked, true, chances);
}

void simulation::vanish_joints(std::size_t process) {
  for (auto const& one : joints_)
    if (one->process == process && !one->gone) {
      one->gone = true;
      one->completions = 1;
    }
}

// --- what must be true of them ---

// That no two have it at once follows: each of their members has one holder, and they need all of them or most.

void simulation::check_joints() {
  auto const trusted_until = [&](joint_call const& one) {
    if (!is_planted(trick::trusts_the_longest)) return one.hold.until();
    instant last{};
    for (auto const& part : one.hold.parts()) last = std::max(last, part->asked->shown.until());
    return last;
  };
  for (auto const& it : joints_) {
    joint_call const& one = *it;
    if (one.gone) continue;
    if (one.completions == 0 && now_ > limit_of(one)) fail(one.label + " should be over", eye::late);
    check_members(one);
    moment const tolerance = kind_.majority ? 0 : lost_rate_;
    instant const until = trusted_until(one);
    if (!one.holds() || until <= joint_time(one) + nanoseconds(tolerance)) continue;
    std::size_t const needed = kind_.majority ? kind_.places.size() / 2 + 1 : kind_.places.size();
    std::size_t there = 0;
    std::vector<moment> ends;
    for (auto const& part : one.hold.parts()) {
      task const& asked = *part->asked;
      node const& me = *nodes_[asked.client];
      bool const pardoned = excused(asked);
      auto const hold = kind_.look(at(me).at.data, asked.key, field_of(asked));
      there += pardoned || hold.count > 0;
      bool const stays = pardoned || hold.ends == keyspace::forever;
      ends.push_back(stays ? endless : hold.count == 0 ? 0 : at(me).when_gone(hold.ends));
    }
    if (there < needed)
      fail(one.label + " is trusted with " + std::to_string(there) + " of " + std::to_string(kind_.places.size()) +
           " members");
    std::sort(ends.rbegin(), ends.rend());
    moment const last = ends[needed - 1];
    if (last != endless && last + tolerance < true_time(*nodes_[client_of(one, 0)], until))
      fail(one.label + " is trusted for longer than its members last");
  }
}

// What it has of its members it needs, and while it waits for one it has none.
void simulation::check_members(joint_call const& one) {
  task const* waits = nullptr;
  task const* has = nullptr;
  bool asks = false;
  for (auto const& [id, kept] : one.asked) {
    task const* const part = kept->asked;
    asks = asks || !part->done();
    if (!part->done() && !part->once) waits = part;
    if (!part->granted() || part->ended) continue;
    has = part;
    bool const needed =
        one.completions == 0 ||
        (one.holds() && std::find(one.hold.parts().begin(), one.hold.parts().end(), kept) != one.hold.parts().end());
    if (!needed) fail(one.label + " is over, and keeps " + part->label);
  }
  if (waits && has) fail(one.label + " waits for " + waits->label + ", while it holds " + has->label);
  if (one.completions == 0 && !asks && one.sleeps_until == detail::never) fail("nobody is on the way for " + one.label);
}

}  // namespace latchkey::simulation
