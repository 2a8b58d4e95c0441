#include <joint/joint_gathering.hpp>

#include <engine/requests.hpp>

#include <algorithm>

namespace latchkey::detail {

namespace {

// What a release found, the better the higher.
enum release_worth : std::int64_t { worth_unknown, worth_expired, worth_still_held, worth_released };

}  // namespace

joint_gathering::joint_gathering(std::shared_ptr<joint_lock const> of, call& one, bool blocking,
                                 std::shared_ptr<joint_hold> about, std::vector<std::shared_ptr<member_hold>> parts)
    : joint_task(of, one, blocking),
      what_(one.what),
      question_(one.question),
      owner_(one.owner),
      lease_(one.lease),
      about_(std::move(about)),
      parts_(std::move(parts)),
      vote_(one.what == operation::type::query ? of->members().size() : parts_.size(), of->quorum()) {}

void joint_gathering::begin() noexcept {
  std::vector<std::shared_ptr<member_call>> all;
  if (what_ == operation::type::query)
    for (auto const& key : of_->members()) all.push_back(question(key, nullptr));
  for (auto const& one : parts_) all.push_back(question(one->key(), one));
  std::vector<std::shared_ptr<member_call>> refused;
  for (auto const& one : all)
    if (one->error) refused.push_back(one);
  std::erase_if(all, [](auto const& one) { return one->error.failed(); });
  start(all);
  for (auto const& one : refused) answered(*one);
}

std::shared_ptr<member_call> joint_gathering::question(joint_lock::member const& key,
                                                       std::shared_ptr<member_hold> const& part) {
  auto made = std::make_shared<member_call>(shared_from_this(), key, 0);
  owner const who = owner_access::from(owner_);
  refusal wrong;
  switch (what_) {
    case operation::type::release: wrong = fill_release(*made, *key, who, part->hold()); break;
    case operation::type::extend: {
      wrong = fill_extend(*made, *key, who, part->hold(), lease_);
      if (of_->majority()) part->extending(drift_of(lease_));
      break;
    }
    default: wrong = fill_query(*made, *key, question_, who);
  }
  made->hold_shown = part;
  made->error = wrong.code;
  made->text = wrong.text;
  return made;
}

std::int64_t joint_gathering::worth_of(member_call const& one) const {
  if (what_ == operation::type::query) return one.error ? joint_vote::failed : std::max<std::int64_t>(one.value, 0);
  bool const lost = one.error == errc::lease_lost || one.error == errc::not_owner;
  if (what_ == operation::type::extend) return one.error && !lost ? joint_vote::failed : !lost && one.yes;
  if (lost) return worth_expired;
  if (one.error) return one.error == errc::connection_lost ? worth_unknown : joint_vote::failed;
  switch (one.released) {
    case release_result::released: return worth_released;
    case release_result::still_held: return worth_still_held;
    case release_result::expired: return worth_expired;
    case release_result::unknown: break;
  }
  return worth_unknown;
}

void joint_gathering::answered(member_call& one) {
  if (what_ == operation::type::release) one.hold_shown->left();
  if (what_ == operation::type::extend && of_->majority()) one.hold_shown->extended(drift_of(lease_), one.yes);
  {
    std::scoped_lock const lock(counting_);
    if (over_) return;  // a majority has decided; what was counted stays as it is
    std::int64_t const worth = worth_of(one);
    if (worth == joint_vote::failed && !error_) {
      error_ = one.error;
      text_ = one.text;
    }
    vote_.add(worth);
    // Where all are needed all are tried before anything is said.
    bool const enough = vote_.complete() || (of_->majority() && vote_.decided());
    if (!enough) return;
    over_ = true;
  }
  if (what_ == operation::type::extend && about_) about_->watch();
  finish([this](call& told) { fill(told); });
}

void joint_gathering::fill(call& told) noexcept {
  std::int64_t const result = vote_.result();
  if (result == joint_vote::failed) {
    told.error = error_;
    told.text = std::move(text_);
    told.released = release_result::unknown;
    return;
  }
  switch (what_) {
    case operation::type::query: told.value = result; return;
    case operation::type::extend: told.yes = result > 0; return;
    default: break;
  }
  constexpr release_result found[] = {release_result::unknown, release_result::expired, release_result::still_held,
                                      release_result::released};
  told.released = found[result];
  if (result == worth_expired) told.error = errc::lease_lost;
  if (result == worth_unknown) told.error = errc::connection_lost;
}

}  // namespace latchkey::detail
