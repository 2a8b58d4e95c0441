#include <joint/machine/joint_answer.hpp>

#include <algorithm>
#include <utility>

namespace latchkey::detail {

namespace {

// What a release found, the better the higher.
enum release_worth : std::int64_t { worth_unknown, worth_expired, worth_still_held, worth_released };

}  // namespace

std::int64_t joint_answer::worth_of(operation const& call) const {
  if (what_ == operation::type::query) return call.error ? joint_vote::failed : std::max<std::int64_t>(call.value, 0);
  bool const lost = call.error == errc::lease_lost || call.error == errc::not_owner;
  if (what_ == operation::type::extend) return call.error && !lost ? joint_vote::failed : !lost && call.yes;
  if (lost) return worth_expired;
  if (call.error) return call.error == errc::connection_lost ? worth_unknown : joint_vote::failed;
  switch (call.released) {
    case release_result::released: return worth_released;
    case release_result::still_held: return worth_still_held;
    case release_result::expired: return worth_expired;
    case release_result::unknown: break;
  }
  return worth_unknown;
}

bool joint_answer::add(operation const& said) {
  if (decided_) return false;  // what was counted stays as it is
  std::int64_t const worth = worth_of(said);
  if (worth == joint_vote::failed && !error_) {
    error_ = said.error;
    text_ = said.text;
  }
  vote_.add(worth);
  decided_ = vote_.complete() || (early_ && vote_.decided());
  return decided_;
}

void joint_answer::fill(operation& told) noexcept {
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
