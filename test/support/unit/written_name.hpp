#pragma once

#include <machine/waiters.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace latchkey::test {

// A name without its machine: what is asked of it is written down.
struct written_name final : detail::waited_name {
  using waited_name::waited_name;

  void send_acquire(detail::operation& call, bool may_go_direct) override {
    call.where = detail::operation::place::trying;
    call.of_owner->ask_.begin(*call.of_owner, {.what = detail::ask::acquire, .call = &call}, shared_.spares.requests);
    asked.push_back((may_go_direct ? "direct " : "try ") + std::to_string(call.owner));
  }
  void hand_over(detail::owner_state&, detail::operation& head, bool) override {
    asked.push_back("hand over " + std::to_string(head.owner));
  }
  void pass_on(detail::owner_state&, detail::operation& to) override {
    asked.push_back("pass on to " + std::to_string(to.owner));
  }
  void doubt() override { asked.push_back("doubt"); }
  void complete(detail::operation& call, error_code, std::string_view) override {
    call.where = detail::operation::place::idle;
    asked.push_back("told " + std::to_string(call.owner));
  }

  std::vector<std::string> asked;
};

}  // namespace latchkey::test
