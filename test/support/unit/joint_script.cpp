#include <support/unit/joint_script.hpp>

#include <stdexcept>

namespace latchkey::test {

using answer_type = joint_acquire::answer::type;
using action_type = joint_acquire::action::type;

joint_rules in_order(std::size_t members, std::vector<std::vector<std::size_t>> const& bundles) {
  static constexpr std::string_view names = "abcdefghijklmnopqrstuvwxyz";
  std::vector<joint_rules::member> all;
  for (std::size_t i = 0; i < members; ++i) all.push_back({names.substr(i, 1), 0});
  std::size_t group = 0;
  for (auto const& bundle : bundles) {
    ++group;
    for (std::size_t const member : bundle) all[member].group = group;
  }
  return joint_rules::all_of(all).with_lease(milliseconds(30'000));
}

joint_rules majority(std::size_t members) { return joint_rules::majority_of(members).with_lease(milliseconds(5'000)); }

joint_script::joint_script(joint_rules rules, joint_acquire::wish asked) : machine(std::move(rules), asked) {}

std::vector<std::string> joint_script::drain() {
  static constexpr char const* names[] = {"ask", "wait", "cancel", "give_back", "keep", "sleep", "finish"};
  std::vector<std::string> said;
  while (auto const next = machine.take()) {
    std::string text = names[static_cast<int>(next->what)];
    for (auto const& one : next->of) text += " " + std::to_string(one.member);
    if (next->what == action_type::ask || next->what == action_type::wait)
      for (auto const& one : next->of) asked_[one.member] = one.id;
    if (next->what == action_type::cancel) cancelled_[next->of[0].member] = next->of[0].id;
    if (next->what == action_type::ask || next->what == action_type::wait || next->what == action_type::sleep)
      last = *next;
    if (next->what == action_type::finish) {
      text = machine.granted() ? "granted" : machine.error() ? "failed: " + machine.error().message() : "busy";
      if (!machine.text().empty()) text += " (" + machine.text() + ")";
    }
    said.push_back(text);
  }
  return said;
}

std::vector<std::string> joint_script::begin() {
  machine.begin(now);
  return drain();
}

std::vector<std::string> joint_script::answer(std::size_t member, joint_acquire::answer said) {
  if (!asked_.contains(member)) throw std::logic_error("member " + std::to_string(member) + " was not asked");
  auto const id = asked_[member];
  asked_.erase(member);
  machine.answered(id, std::move(said), now);
  return drain();
}

std::vector<std::string> joint_script::grant(std::size_t member, milliseconds lease) {
  return answer(member, {.what = answer_type::granted, .until = now + lease});
}

std::vector<std::string> joint_script::busy(std::size_t member) { return answer(member, {.what = answer_type::busy}); }

std::vector<std::string> joint_script::untried(std::size_t member) {
  return answer(member, {.what = answer_type::untried});
}

std::vector<std::string> joint_script::fail(std::size_t member, error_code why, std::string text) {
  return answer(member, {.what = answer_type::failed, .error = why, .text = std::move(text)});
}

std::vector<std::string> joint_script::late_grant(std::size_t member) {
  machine.answered(cancelled_.at(member), {.what = answer_type::granted, .until = now + std::chrono::seconds(30)}, now);
  return drain();
}

std::vector<std::string> joint_script::cancel(error_code why) {
  machine.cancel(why, now);
  return drain();
}

std::vector<std::string> joint_script::lose() {
  machine.lost(now);
  return drain();
}

std::vector<std::string> joint_script::wake() {
  now = std::max(now, last.when);
  machine.time(now);
  return drain();
}

}  // namespace latchkey::test
