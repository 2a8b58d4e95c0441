#include <engine/requests.hpp>
#include <joint/joint_gathering.hpp>

namespace latchkey::detail {

joint_gathering::joint_gathering(std::shared_ptr<joint_lock const> of, call& one, bool blocking,
                                 std::shared_ptr<joint_hold> about, std::vector<std::shared_ptr<member_hold>> parts)
    : joint_task(of, one, blocking),
      what_(one.what),
      question_(one.question),
      owner_(one.owner),
      lease_(one.lease),
      about_(std::move(about)),
      parts_(std::move(parts)),
      // Where all are needed all are tried before anything is said.
      answer_(one.what, about_ ? parts_.size() : of->members().size(), of->rules().quorum, of->rules().at_once) {}

void joint_gathering::begin() noexcept {
  std::vector<std::shared_ptr<member_call>> sent, refused;
  auto const ask = [&](joint_lock::member const& key, std::shared_ptr<member_hold> const& part) {
    auto made = question(key, part);
    (made->error ? refused : sent).push_back(std::move(made));
  };
  auto guard = of_->guard();
  if (!about_)
    for (auto const& key : of_->members()) ask(key, nullptr);
  for (auto const& one : parts_) ask(one->key(), one);
  start(sent, guard);
  for (auto const& one : refused) answered(*one, guard);
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
      part->trust.extending(of_->drift(lease_));
      break;
    }
    default: wrong = fill_query(*made, *key, question_, who);
  }
  made->hold_shown = part;
  made->error = wrong.code;
  made->text = wrong.text;
  return made;
}

void joint_gathering::answered(member_call& one, joint_guard& guard) {
  if (what_ == operation::type::release) one.hold_shown->left();
  if (what_ == operation::type::extend) one.hold_shown->trust.extended(of_->drift(lease_), one.yes);
  if (!answer_.add(one)) return;
  if (what_ == operation::type::extend) about_->watch(guard);
  finish(guard, [this](call& told) { answer_.fill(told); });
}

}  // namespace latchkey::detail
