#pragma once

#include <base/instant.hpp>
#include <machine/agenda.hpp>
#include <machine/hold_link.hpp>
#include <machine/operation.hpp>
#include <wire/item.hpp>

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace latchkey::detail {

class name_machine;
class own_channel;
struct record;

// One hold of an owner: from a grant to its release or loss. The hook is for lost ones that wait for their unlock.
struct hold : boost::intrusive::list_base_hook<> {
  hold_id id = 0;
  hold_id generation = 0;  // new at every `extend`: answers to earlier renewals no longer count
  record* of = nullptr;
  unsigned char mode = 0;
  bool watchdog = false;  // renewed until release
  bool lost = false;      // ended, but its owner has not yet called unlock
  instant began{};
  instant deadline{};  // trusted until then
  instant renew_until = never;
  hold_link* link = nullptr;
  timer_node expiry;
};

// The one request that a record may have under way. Renewals are exempt: see `renewal`.
struct request {
  enum class place : unsigned char {
    none,
    outbox,     // not yet sent
    shared,     // sent, unanswered
    direct,     // sent by a caller, unanswered
    unsettled,  // its connection was discarded: waits until KILL was answered
  };

  ask what = ask::none;
  place where = place::none;
  unsigned char mode = 0;
  bool grantee = false;    // part of the hand-off that `partner` has under way
  bool give_back = false;  // a release that nobody asked for
  bool abandoned = false;  // an acquire, or the grant of a hand-off, that nobody waits for any more
  bool repeated = false;   // an earlier copy was never answered
  bool owes = false;       // an acquire never sent that took the place of a release: who gives it up gives back
  unsigned char fix = 0;   // sides, one bit each, of which holds ended while it was under way: to be repaired
  unsigned char command = 0;
  std::int64_t target = 0;
  std::int64_t lease = 0;    // milliseconds
  std::uint64_t bundle = 0;  // acquire: those of the same number leave in one call
  std::int64_t amount = 1;
  std::shared_ptr<std::string const> argument{};
  std::uint64_t ticket = 0;  // acquire: calls that joined later than this are not answered by it
  instant sent{};            // of the copy that will be answered, taken before the write
  instant first_sent{};      // of the copy that a repeated one asks about
  instant until{};           // release: deadline of the hold that it ends
  instant began{};           // release: when that hold began
  hold_id extends = 0;
  milliseconds wanted{0};     // extend: as the caller asked
  operation* call = nullptr;  // who waits for the answer
  record* partner = nullptr;

  bool under_way() const { return what != ask::none; }
  bool sent_or_unsettled() const { return where != place::none && where != place::outbox; }
};

// Renewal of one field: all watchdog holds that an owner has on one side of a lock.
struct renewal : boost::intrusive::list_base_hook<> {
  renewal(record& whose, unsigned char side) : of(&whose), mode(side) {}

  record* const of;
  unsigned char const mode;
  bool under_way = false;
  unsigned failures = 0;
  hold_id newest = 0;  // holds above it did not exist when the renewal was sent
  instant due = never;
  instant sent{};
};

struct outbox_tag;
struct owner_tag;

using outbox_hook = boost::intrusive::list_base_hook<boost::intrusive::tag<outbox_tag>>;
using owner_hook = boost::intrusive::set_base_hook<boost::intrusive::tag<owner_tag>,
                                                   boost::intrusive::link_mode<boost::intrusive::safe_link>,
                                                   boost::intrusive::optimize_size<true>>;

// What one owner has on one name: its holds and its request.
struct record : outbox_hook, owner_hook {
  static constexpr unsigned most_modes = 2;
  static constexpr std::size_t most_holds = std::size_t{1} << 20;  // of one owner on one lock

  explicit record(name_machine& name, std::uint64_t number);
  ~record();
  record(record const&) = delete;
  record& operator=(record const&) = delete;

  int live(unsigned char mode) const { return live_[mode]; }
  int live() const { return live_[0] + live_[1]; }
  int const* live_by_mode() const { return live_.data(); }

  hold& add(hold made);
  void end(hold& ended);  // forgets it
  void lose(hold& lost);  // keeps it, as lost, until its owner asks
  hold* find(hold_id id);
  hold* latest(unsigned char mode);  // the newest, lost ones included
  // The longest time that the live holds of a side need, in milliseconds; a watchdog hold counts the whole
  // watchdog time. `except` is left out.
  std::int64_t longest(unsigned char mode, instant now, milliseconds watchdog_time, hold const* except = nullptr) const;
  instant latest_deadline() const;

  // As new, for another owner perhaps, in the memory that it has.
  static void renew(std::unique_ptr<record>& one, name_machine& name, std::uint64_t number);

  bool idle() const {
    return holds.empty() && !ask_.under_way() && behind.empty() && queued == 0 && !renewing() && !in_line;
  }
  bool renewing() const { return (sides_[0] && sides_[0]->under_way) || (sides_[1] && sides_[1]->under_way); }
  // Made when a side is first renewed: most records belong to waiters.
  renewal& side(unsigned char mode);
  renewal* known_side(unsigned char mode) const { return sides_[mode].get(); }

  name_machine& of;
  std::uint64_t const owner;
  std::vector<std::unique_ptr<hold>> holds;  // in the order of their grants
  request ask_;
  boost::intrusive::list<operation> behind;  // wait until the request under way was answered
  std::unique_ptr<own_channel> own;          // while it waits, for kinds whose waiters have channels of their own
  milliseconds line_time{0};                 // with which it entered the server's queue
  unsigned queued = 0;                       // operations of this owner in the queue of the name
  unsigned char outbox_order = 0;            // which list of the outbox it stands in
  bool in_line = false;                      // the server may have it in a queue

 private:
  std::array<int, most_modes> live_{};
  std::array<std::unique_ptr<renewal>, most_modes> sides_;
  std::unique_ptr<hold> spare_;  // its memory serves the next hold
};

// The records of a name, by their owners. Most names have one or none: then this takes no memory of its own.
class record_set {
 public:
  record_set() = default;
  ~record_set() { all_.clear_and_dispose(std::default_delete<record>()); }
  record_set(record_set const&) = delete;
  record_set& operator=(record_set const&) = delete;

  record* find(std::uint64_t owner) const;
  record& insert(std::unique_ptr<record> one);
  std::unique_ptr<record> extract(record& one);

  bool empty() const { return all_.empty(); }
  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }

 private:
  struct owner_of {
    using type = std::uint64_t;
    type operator()(record const& one) const { return one.owner; }
  };
  mutable boost::intrusive::set<record, boost::intrusive::base_hook<owner_hook>,
                                boost::intrusive::key_of_value<owner_of>, boost::intrusive::constant_time_size<false>>
      all_;
};

// What idle records leave behind, so that steady work does not allocate it again and again.
class spare_storage {
 public:
  spare_storage();
  record& make(record_set& all, name_machine& name, std::uint64_t owner);
  // \pre it is idle.
  void take(record_set& all, record& ended) noexcept;

 private:
  std::vector<std::unique_ptr<record>> records_;
};

}  // namespace latchkey::detail
