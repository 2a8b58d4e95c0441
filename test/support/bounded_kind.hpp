#pragma once

#include <wire/reentrant_family.hpp>

#include <memory>
#include <string>

namespace latchkey::test {

// A made-up kind with a parameter: a reentrant lock that its owner may take again so many times, and no more.
// [kind]
class bounded final : public detail::reentrant_family {
 public:
  explicit bounded(int most_again)
      : reentrant_family({.name = "bounded_lock", .parameters = std::to_string(most_again)}), most_again_(most_again) {}

  admission admit(unsigned char mode, int const* live) const override {
    return live[0] > most_again_ ? admission::too_often : reentrant_family::admit(mode, live);
  }

 private:
  int const most_again_;
};

inline detail::kind_ptr bounded_kind(int most_again) { return detail::kind_ptr(new bounded(most_again)); }
// [/kind]

}  // namespace latchkey::test
