#pragma once

#include <support/catch.hpp>
#include <sweeps/failing_memory.hpp>
#include <sweeps/sweep_config.hpp>
#include <sweeps/uses.hpp>

#include <boost/system/system_error.hpp>

#include <new>

namespace latchkey::test {

// How the runs of a sweep ended.
struct memory_sweep {
  int thrown = 0;  // std::bad_alloc
  int errors = 0;  // an error, or a loss
  int passed = 0;  // nobody noticed
  int ended = 0;   // so many clients ended with it

  // One use with the n-th allocation failing, for every n until it passes without any. With `cold` by a
  // client, new each time, that has no more than one connection yet.
  void over(use const& what, bool cold = false);

 private:
  bool run_once(use const& what, clients const& own, std::string const& name, long n);
  void use_again(use const& what, clients& own);
};

}  // namespace latchkey::test
