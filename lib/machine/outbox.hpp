#pragma once

#include <machine/owner_state.hpp>

#include <boost/intrusive/list.hpp>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace latchkey::detail {

struct context;

// Requests that wait for the end of the turn, when they leave together: give-backs and releases before hand-offs,
// hand-offs before renewals, renewals before acquires. What stands in the outbox of one server may be taken out by that
// of another: none counts what it has.
class outbox {
 public:
  using owner_list = requests_list<outbox_hook>;
  using renewal_list = boost::intrusive::list<renewal, boost::intrusive::constant_time_size<false>>;
  using plain_list = boost::intrusive::list<operation, boost::intrusive::constant_time_size<false>>;
  enum order : unsigned char { releases, hand_offs, extensions, acquires, orders };

  explicit outbox(context& shared) : shared_(shared) {}

  void add(owner_state& state);
  void add(renewal& renewal);
  void add(operation& plain);  // a query or a force-unlock
  void remove(owner_state& state);
  void remove(renewal& renewal);
  void remove(operation& plain);
  // Nor is anybody to be told of anything.
  void forget_renewals();
  // A lock was freed at a server that does not have its slot yet: whoever listens at this one was not told.
  void tell(kind const& which, std::string_view name);
  std::vector<std::string> take_told() { return std::exchange(told_, {}); }

  // Until then nothing leaves whose detours have made it due a rest.
  instant rests_until() const { return rests_until_; }
  void rest(detour const& of);
  bool rests(detour const& of, instant now) const { return of.due_a_rest() && now < rests_until_; }

  bool empty() const;
  owner_list& of(order which) { return lists_[which]; }
  renewal_list& renewals() { return renewals_; }
  plain_list& plain() { return plain_; }

 private:
  context& shared_;
  std::array<owner_list, orders> lists_;
  renewal_list renewals_;
  plain_list plain_;
  std::vector<std::string> told_;  // channels
  instant rests_until_{};
};

}  // namespace latchkey::detail
