#pragma once

#include <machine/context.hpp>
#include <machine/plain_calls.hpp>

namespace latchkey::detail {

// A connect wants any node of a cluster. It asks one; where that is not to be had soon it asks all of them, and the
// first that can be connected ends it.
class any_node {
 public:
  any_node(context& shared, plain_calls const& plain) : shared_(shared), plain_(plain) {
    timer_.what = timer_node::type::session;
  }
  ~any_node() { shared_.timers.drop(timer_); }
  any_node(any_node const&) = delete;
  any_node& operator=(any_node const&) = delete;

  // Every turn begins with it.
  void look(bool none_serves) {
    instant const asks_all = after(plain_.connecting_since(), first_node_time);
    none_serves = none_serves && plain_.connecting();
    wanted_ = none_serves && shared_.now >= asks_all;
    if (none_serves && !wanted_) shared_.timers.set_lazily(timer_, asks_all);
  }
  bool wanted() const { return wanted_; }

 private:
  static constexpr milliseconds first_node_time{100};

  context& shared_;
  plain_calls const& plain_;
  timer_node timer_;
  bool wanted_ = false;
};

}  // namespace latchkey::detail
