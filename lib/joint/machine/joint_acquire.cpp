#include <joint/machine/joint_acquire.hpp>

#include <machine/operation.hpp>
#include <wire/server_error.hpp>

#include <algorithm>
#include <functional>
#include <utility>

namespace latchkey::detail {

using namespace std::chrono_literals;

namespace {

constexpr unsigned eager_rounds = 3;  // lost without a pause
constexpr unsigned most_idle = 16;    // steps without a word of who is busy: no server of ours answers so
// Two callers who meet again and again are told apart by their pauses, which must be long beside a round trip.
constexpr milliseconds step_pause{2};
constexpr milliseconds most_pause{400};
// No message tells of a free moment: with 400 ms a waiter stood for up to 6 s beside one who had it all the time, with
// 50 ms one wait of a hundred took 340 ms, with this 145 ms.
constexpr milliseconds round_pause{25};
// A round that the end of the wait cuts off leaves unseen who has granted: the caller could be told no more than that.
constexpr int round_reserve = 4;
constexpr milliseconds least_reserve{10};

bool may_pass(error_code const& error, std::string const& text) {
  return is_transient(error) || (!text.empty() && classify(text).transient);
}

}  // namespace

joint_acquire::joint_acquire(joint_rules rules, wish asked)
    : rules_(std::move(rules)), asked_(asked), slots_(rules_.members), random_(asked.seed) {}

void joint_acquire::begin(instant now) {
  now_ = now;
  began_at_ = now;
  first_limit_ = std::max(asked_.deadline, after(now, first_try_time));
  if (rules_.at_once) return next_round();
  next_step();
}

std::optional<joint_acquire::action> joint_acquire::take() {
  if (actions_.empty()) return std::nullopt;
  action step = std::move(actions_.front());
  actions_.pop_front();
  return step;
}

std::vector<joint_acquire::question> joint_acquire::held() const {
  std::vector<question> all;
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].at == state::held) all.push_back({i, slots_[i].id});
  return all;
}

bool joint_acquire::some_asked() const {
  return std::any_of(slots_.begin(), slots_.end(), [](slot const& member) { return member.at == state::asked; });
}

// What fewer members may have granted unseen than others can do without keeps nobody out.
bool joint_acquire::may_be_left() const {
  auto const unseen =
      std::count_if(slots_.begin(), slots_.end(), [](slot const& member) { return member.unseen || member.recalled; });
  return static_cast<std::size_t>(unseen) > rules_.members - rules_.quorum;
}

void joint_acquire::ask(std::vector<std::size_t> const& members, action::type how, instant deadline) {
  bool const waits = how == action::type::ask && !rules_.at_once && !asked_.once;
  action made{.what = how, .when = deadline, .comes_back = waits && held().empty() && !over()};
  for (std::size_t const member : members) {
    slots_[member] = {state::asked, next_id_, {}, slots_[member].unseen};
    made.of.push_back({member, next_id_++});
  }
  began_ = true;
  actions_.push_back(std::move(made));
}

void joint_acquire::answered(attempt id, answer said, instant now) {
  now_ = now;
  auto const found = std::find_if(slots_.begin(), slots_.end(),
                                  [&](slot const& member) { return member.at == state::asked && member.id == id; });
  bool const yes = said.what == answer::type::granted;
  if (found == slots_.end() || finished_) {
    if (found != slots_.end()) found->at = state::idle;
    if (!yes) return;
    bool const joins = found != slots_.end() && granted_;
    auto const member = static_cast<std::size_t>(found - slots_.begin());
    return actions_.push_back(
        {.what = joins ? action::type::keep : action::type::give_back, .of = {{joins ? member : 0, id}}});
  }
  found->at = yes ? state::held : state::idle;
  took_ = took_ || yes;
  found->until = said.until;
  found->unseen = may_still_be_held(said.error);
  if (said.what != answer::type::failed && round_began_ != instant{})
    heard_after_ = rules_.at_once ? now - round_began_ : std::max(heard_after_, now - round_began_);
  if (rules_.at_once) return count_at_once(std::move(said));
  count_in_step(static_cast<std::size_t>(found - slots_.begin()), std::move(said));
}

void joint_acquire::time(instant now) {
  now_ = now;
  if (finished_ || now < sleeps_until_) return;
  sleeps_until_ = never;
  if (over()) return no_more();
  if (!rules_.at_once) return wait_for(blocking_);
  round_fits() ? next_round() : sleep_until(asked_.deadline);
}

void joint_acquire::cancel(error_code const& why, instant now) {
  now_ = now;
  if (finished_) return cancel_asked();
  fail(why);
}

// What is given back may be there for a while: the end is none that says that nothing is.
void joint_acquire::lost(instant now) {
  now_ = now;
  finished_ = granted_ = false;
  if (asked_.once || over()) return fail(errc::timeout);
  rules_.at_once ? judge_round() : step_back(0);
}

// --- step by step ---

// Asks those of the next step who are not held yet.
void joint_acquire::next_step() {
  for (auto const& step : rules_.steps) {
    std::vector<std::size_t> missing;
    for (std::size_t const member : step)
      if (slots_[member].at != state::held) missing.push_back(member);
    if (missing.empty()) continue;
    if (began_ && now_ >= (lost_rounds_ == 0 ? first_limit_ : asked_.deadline)) return no_more();
    // As with one name, what has left is worth more than a guess. But others may want what is held meanwhile.
    instant const limit = over() ? first_limit_ : std::max(asked_.deadline, after(now_, first_try_time));
    round_began_ = now_;
    return ask(missing, action::type::ask, held().empty() ? limit : std::min(limit, after(now_, longest_step())));
  }
  conclude();
}

void joint_acquire::count_in_step(std::size_t member, answer said) {
  switch (said.what) {
    case answer::type::granted: idle_steps_ = 0; break;
    case answer::type::busy:
      busy_seen_ = true;
      if (!busy_ || rules_.rank[member] < rules_.rank[*busy_]) busy_ = member;
      break;
    case answer::type::untried:
      if (!untried_ || rules_.rank[member] < rules_.rank[*untried_]) untried_ = member;
      break;
    case answer::type::failed:
      // What will not pass is what the caller has to hear.
      if (failed_ && !may_pass(error_, text_)) break;
      failed_ = member;
      error_ = said.error;
      text_ = std::move(said.text);
  }
  if (!some_asked()) judge_step();
}

void joint_acquire::judge_step() {
  auto const busy = std::exchange(busy_, std::nullopt);
  auto const failed = std::exchange(failed_, std::nullopt);
  auto const untried = std::exchange(untried_, std::nullopt);
  if (failed || busy) busy_last_ = busy.has_value();
  if (failed) {
    bool const passes = may_pass(error_, text_);
    if (!passes || asked_.once) return fail(error_, std::move(text_));
    return step_back(*failed);
  }
  if (busy) return step_back(*busy);
  if (untried && ++idle_steps_ > most_idle) return fail(errc::server_error, "an answer of unexpected form");
  // It is left to others for a moment.
  if (untried && held().empty() && !asked_.once && !over()) return wait_for(*untried);
  next_step();
}

// One of them is not to be had now: nothing is held while waiting for it.
void joint_acquire::step_back(std::size_t blocking) {
  give_everything_back();
  if (asked_.once || over()) return no_more();
  blocking_ = blocking;
  if (++lost_rounds_ <= eager_rounds) return wait_for(blocking);
  milliseconds const most = std::min(step_pause * (1 << std::min(lost_rounds_ - eager_rounds, 16u)), most_pause);
  sleep(0ms, most);
}

void joint_acquire::wait_for(std::size_t member) {
  round_began_ = {};
  ask({member}, action::type::wait, asked_.deadline);
}

// While others are held. Far servers have a few times as long as they took to answer, up to half of a lease.
nanoseconds joint_acquire::longest_step() const {
  nanoseconds const least = to_nanoseconds(rules_.member_time);
  return std::clamp(round_reserve * heard_after_, least, 5 * least);
}

// --- all at once ---

void joint_acquire::next_round() {
  std::vector<std::size_t> all(slots_.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  refused_ = hopeless_ = 0;
  round_began_ = now_;
  heard_after_ = nanoseconds(0);
  busy_.reset();
  error_.clear();
  text_.clear();
  instant deadline = after(now_, rules_.member_time);
  if (asked_.deadline < deadline) deadline = began_ ? asked_.deadline : std::min(deadline, first_limit_);
  ask(all, action::type::ask, deadline);
}

// As slow as the last one, or a few times so. The first one may have been slow because it connected: of what took less
// than half of the wait there is another one in the other half.
bool joint_acquire::round_fits() const {
  nanoseconds const reserve = std::min(round_reserve * heard_after_, (asked_.deadline - began_at_) / 2);
  return std::max(reserve, to_nanoseconds(least_reserve)) <= asked_.deadline - now_;
}

void joint_acquire::count_at_once(answer said) {
  if (held().size() >= rules_.quorum) return conclude();
  if (said.what == answer::type::failed) {
    bool const passes = may_pass(said.error, said.text);
    if (!error_ || (!passes && hopeless_ == 0)) {
      error_ = said.error;
      text_ = std::move(said.text);
    }
    hopeless_ += !passes;
  } else if (said.what != answer::type::granted) {
    busy_ = 0;
    busy_seen_ = true;
  }
  refused_ += said.what != answer::type::granted;
  if (rules_.members - refused_ < rules_.quorum) judge_round();
}

// The quorum cannot be reached in this round.
void joint_acquire::judge_round() {
  // Who is asked hears that the wait is over as well: whether he may have it unseen he says himself.
  if (over() && some_asked()) return;
  busy_last_ = busy_.has_value();
  give_everything_back();
  if (hopeless_ > rules_.members - rules_.quorum) return fail(error_, std::move(text_));
  if (asked_.once) return busy_ ? finish(false) : fail(error_, std::move(text_));
  if (over()) return no_more();
  for (slot& member : slots_) member.recalled = false;  // answered long before the next round is over
  sleep(round_pause / 2, round_pause);
}

// --- the end ---

void joint_acquire::conclude() {
  busy_last_ = false;
  std::vector<instant> until;
  for (slot const& member : slots_)
    if (member.at == state::held) until.push_back(member.until);
  auto const last = until.begin() + static_cast<std::ptrdiff_t>(rules_.quorum - 1);
  std::nth_element(until.begin(), last, until.end(), std::greater<>());
  if (*last > now_) return finish(true);
  error_ = errc::timeout;
  text_ =
      rules_.at_once ? "the lease had ended before enough answers came" : "the lease had ended before its answer came";
  if (rules_.at_once) return judge_round();
  step_back(slowest());
}

// Waited for while nothing is held, it lets none of the others grow old.
std::size_t joint_acquire::slowest() const {
  auto const found =
      std::max_element(slots_.begin(), slots_.end(), [](slot const& a, slot const& b) { return a.until < b.until; });
  return static_cast<std::size_t>(found - slots_.begin());
}

// At random, with a splitmix64.
void joint_acquire::sleep(milliseconds least, milliseconds most) {
  std::uint64_t bits = (random_ += 0x9E3779B97F4A7C15u);
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
  bits ^= bits >> 31;
  nanoseconds const span = to_nanoseconds(most - least);
  nanoseconds const more(static_cast<nanoseconds::rep>(bits % static_cast<std::uint64_t>(span.count() + 1)));
  sleep_until(std::min(after(now_, least + more), asked_.deadline));
}

void joint_acquire::sleep_until(instant end) {
  sleeps_until_ = end;
  actions_.push_back({.what = action::type::sleep, .when = sleeps_until_});
}

void joint_acquire::give_everything_back() {
  for (auto const& one : held()) {
    actions_.push_back({.what = action::type::give_back, .of = {one}});
    slots_[one.member].at = state::idle;
  }
  cancel_asked();
}

void joint_acquire::cancel_asked() {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].at != state::asked) continue;
    actions_.push_back({.what = action::type::cancel, .of = {{i, slots_[i].id}}});
    slots_[i].at = state::idle;
    slots_[i].recalled = true;
  }
}

// The wait is over.
void joint_acquire::no_more() {
  give_everything_back();
  if (busy_last_ && !may_be_left()) return finish(false);
  bool const no_server = error_ == errc::connect_failed || error_ == errc::no_master;
  bool const nothing_left = !may_be_left() && !took_ && !busy_seen_ && no_server;
  fail(nothing_left ? error_ : error_code(errc::timeout), std::move(text_));
}

void joint_acquire::fail(error_code why, std::string text) {
  give_everything_back();
  finish(false);
  if (may_be_left() && !may_still_be_held(why)) {
    if (text.empty()) text = why.message();
    why = errc::connection_lost;
  }
  error_ = why;
  text_ = std::move(text);
}

void joint_acquire::finish(bool granted) {
  finished_ = true;
  granted_ = granted;
  error_.clear();
  text_.clear();
  actions_.push_back({.what = action::type::finish});
}

}  // namespace latchkey::detail
