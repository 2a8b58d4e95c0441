#include <interop/support/history.hpp>

namespace latchkey::test {

namespace {

// What every kind of lock can do. The differences that are meant to be have tests of their own in differences_test.cpp.
constexpr std::string_view common_steps = R"(a lock
a try_lock
b try_lock
b try_lock 60 -1
b begin lock
a unlock
a unlock; b finish
b unlock
a lock 900
b try_lock
expire
a unlock
b try_lock 0 5000
a try_lock 30 -1
b force_unlock
b unlock
a try_lock
a unlock)";

}  // namespace

std::vector<history> const& histories() {
  static std::vector<history> const all{
      {"lock", parts_of(common_steps, '\n')},
  };
  return all;
}

}  // namespace latchkey::test
