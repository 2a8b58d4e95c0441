#pragma once

#include <joint/machine/joint_acquire.hpp>

#include <map>
#include <string>
#include <vector>

namespace latchkey::test {

using detail::instant;
using detail::joint_acquire;
using detail::joint_rules;
using detail::milliseconds;

// One by one in this order, for a lease of 30 s; with `bundles` the members of each are asked together.
joint_rules in_order(std::size_t members, std::vector<std::vector<std::size_t>> const& bundles = {});
// Most of them, for a lease of 5 s.
joint_rules majority(std::size_t members);

// A joint_acquire whose members say what a test lets them say. What it wants comes out as text: `ask 0 1`, `wait 2`,
// `cancel 0`, `give_back 1`, `keep 3`, `sleep`, `granted`, `busy`, `failed: ...`.
class joint_script {
 public:
  explicit joint_script(joint_rules rules, joint_acquire::wish asked = {});

  // What it has asked for since the last call.
  std::vector<std::string> begin();
  std::vector<std::string> grant(std::size_t member, milliseconds lease = milliseconds(30'000));
  std::vector<std::string> busy(std::size_t member);
  std::vector<std::string> untried(std::size_t member);
  std::vector<std::string> fail(std::size_t member, error_code why, std::string text = {});
  // An answer to a question that was taken back.
  std::vector<std::string> late_grant(std::size_t member);
  std::vector<std::string> cancel(error_code why);
  // One of those that were granted is gone when the last of them is.
  std::vector<std::string> lose();
  // The pause is over.
  std::vector<std::string> wake();

  instant now = instant(std::chrono::hours(1));
  joint_acquire machine;
  joint_acquire::action last;  // the last question or pause

 private:
  std::vector<std::string> drain();
  std::vector<std::string> answer(std::size_t member, joint_acquire::answer said);

  std::map<std::size_t, joint_acquire::attempt> asked_;
  std::map<std::size_t, joint_acquire::attempt> cancelled_;
};

}  // namespace latchkey::test
