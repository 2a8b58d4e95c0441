#pragma once

#include <base/instant.hpp>
#include <latchkey/config.hpp>
#include <machine/few.hpp>
#include <machine/hold_link.hpp>
#include <machine/operation.hpp>
#include <machine/timer_queue.hpp>
#include <wire/item.hpp>
#include <wire/kind.hpp>

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace latchkey::detail {

class name_machine;
class own_channel;
struct owner_state;

// AddressSanitizer sees a use after the end only in memory that was really freed.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool keeps_memory = false;
#elif defined(__has_feature)
inline constexpr bool keeps_memory = !__has_feature(address_sanitizer);
#else
inline constexpr bool keeps_memory = true;
#endif

// For how long a renewed hold is trusted. The margin is on the server alone, as a lock delay is.
milliseconds renewed_trust(config const& settings);

// One hold of an owner: from a grant to its release or loss. It is due at its deadline; a lost one that waits for its
// unlock stands in `context::lost_holds` instead.
struct hold : timed {
  unsigned char mode = 0;
  bool watchdog = false;  // renewed until release
  bool lost = false;      // ended, but its owner has not yet called unlock
  bool leased = false;    // a lease shows it, or did until it went away: nothing else releases it
  bool adopted = false;   // was not granted to this client: when it ends here, somebody else may have it further
  hold_id id = 0;
  hold_id generation = 0;  // new at every `extend`: answers to earlier renewals no longer count
  owner_state* of = nullptr;
  instant began{};
  instant deadline{};           // trusted until then
  instant renew_until = never;  // no renewal makes it last longer
  hold_link* link = nullptr;
  std::uint64_t context = 0;  // for its events, also when nothing shows it any more

  // When a renewal that is sent now ends.
  instant renewed(instant now, milliseconds watchdog_time) const {
    return std::min(after(now, watchdog_time), renew_until);
  }
};

// The one request that an owner may have under way. Renewals are exempt: see `renewal`.
struct request {
  enum class place : unsigned char {
    none,
    outbox,    // not yet sent
    shared,    // sent, unanswered
    direct,    // sent by a caller, unanswered
    in_doubt,  // its connection was discarded: waits until KILL was answered
  };

  ask what = ask::none;
  place where = place::none;
  unsigned char mode = 0;
  bool grantee = false;    // part of the hand-off that `partner` has under way
  bool give_back = false;  // a release that nobody asked for
  bool abandoned = false;  // an acquire, or the grant of a hand-off, that nobody waits for any more
  bool repeated = false;   // an earlier copy was never answered
  bool doubtful = false;   // an acquire on the direct lane: a force-unlock, answered meanwhile, may have run later
  bool owes = false;       // an acquire never sent that took the place of a release: who gives it up gives back
  bool on_left = false;    // what it stands on has ended by time, and is left to its lease: it gives nothing back
  detour sent_on{};
  unsigned char fix = 0;  // modes, one bit each, of which holds ended while it was under way: to be repaired
  unsigned char command = 0;
  std::int64_t target = 0;
  std::int64_t lease = 0;  // milliseconds
  std::int64_t amount = 1;
  std::shared_ptr<std::string const> argument{};
  std::uint64_t ticket = 0;  // acquire: calls that joined later than this are not answered by it
  instant sent{};            // of the copy that will be answered, taken before the write
  instant first_sent{};      // of the copy that a repeated one asks about
  instant until{};           // release: deadline of the hold that it ends; give-back: from then on it may be forgotten
  instant began{};           // release: when that hold began
  hold_id extends = 0;
  std::uint64_t context = 0;  // for the events of what it takes or ends
  milliseconds wanted{0};     // extend: as the caller asked
  operation* call = nullptr;  // who waits for the answer
  owner_state* partner = nullptr;

  void leaves(instant now) {
    sent = now;
    doubtful = false;
    if (!repeated) first_sent = now;
  }
  // The grant of a hand-off leaves with the release.
  instant sent_at() const;
  // Acquires of the same number leave in one call. One that nobody waits for any more does not leave again.
  std::uint64_t bundle() const { return what == ask::acquire && call ? call->bundle : 0; }
  bool under_way() const { return what != ask::none; }
  // What it did, or may have done, is given back if nobody has it.
  bool may_stand() const { return (repeated || owes) && !on_left; }
  bool sent_or_in_doubt() const { return where != place::none && where != place::outbox; }
};

// What steady work leaves behind, so that it does not allocate it again and again.
template <class T>
class spare_list {
 public:
  explicit spare_list(std::size_t most) { all_.reserve(most); }

  template <class... Args>
  std::unique_ptr<T> make(Args&&... args) {
    if (all_.empty()) return std::make_unique<T>(std::forward<Args>(args)...);
    auto spare = take();
    std::destroy_at(spare.get());
    std::construct_at(spare.get(), std::forward<Args>(args)...);
    return spare;
  }
  bool empty() const { return all_.empty(); }
  // \pre there is one.
  std::unique_ptr<T> take() {
    auto spare = std::move(all_.back());
    all_.pop_back();
    return spare;
  }
  void keep(std::unique_ptr<T> ended) noexcept {
    if (keeps_memory && all_.size() < all_.capacity()) all_.push_back(std::move(ended));
  }

 private:
  std::vector<std::unique_ptr<T>> all_;
};

struct outbox_tag;
struct active_tag;

using outbox_hook = boost::intrusive::list_base_hook<boost::intrusive::tag<outbox_tag>>;
using active_hook = boost::intrusive::list_base_hook<boost::intrusive::tag<active_tag>>;

// A request, and where it stands.
struct placed_request : outbox_hook, active_hook {
  bool in_outbox() const { return outbox_hook::is_linked(); }
  // Among those that others may have to wait for: see active_requests.
  bool noted() const { return active_hook::is_linked(); }

  owner_state* of = nullptr;
  unsigned char outbox_order = 0;  // which list of the outbox it stands in
  request asked{};
};

// The request of an owner. Most owners only hold, or wait behind others: it takes memory while there is one.
class own_request {
 public:
  // One of `ask::none`, as long as nothing is under way.
  request const& operator*() const { return made_ ? made_->asked : none; }
  request const* operator->() const { return &**this; }
  // \pre it is under way.
  request& pending() {
    assert(made_);
    return made_->asked;
  }
  // Null: nothing is under way, nor about to begin.
  placed_request* place() const { return made_.get(); }

  // So that begin() does not throw. \throws std::bad_alloc: nothing has changed.
  void make_room(owner_state& of, spare_list<placed_request>& from) {
    if (made_) return;
    made_ = from.empty() ? std::make_unique<placed_request>() : from.take();
    made_->of = &of;
  }
  // If nothing has begun there.
  void leave_room(spare_list<placed_request>& to) noexcept {
    if (made_ && !made_->asked.under_way()) to.keep(std::move(made_));
  }
  void begin(owner_state& of, request&& what, spare_list<placed_request>& from) {
    make_room(of, from);
    made_->asked = std::move(what);
  }
  // \pre it is under way.
  void end(spare_list<placed_request>& to) noexcept {
    made_->asked = {};
    to.keep(std::move(made_));
  }

 private:
  static inline request const none{};

  std::unique_ptr<placed_request> made_;
};

// Renewal of one field: all watchdog holds that an owner has in one mode of a lock.
struct renewal : boost::intrusive::list_base_hook<> {
  renewal(owner_state& whose, unsigned char in_mode) : of(&whose), mode(in_mode) {}

  // Does its answer say how long this hold lasts?
  bool covers(hold const& hold) const;
  // It looks after every hold of this mode that there was when it was sent.
  bool concerns(hold const& hold) const;
  bool concerns_any() const;

  owner_state* const of;
  unsigned char const mode;
  bool under_way = false;
  detour sent_on{};
  bool looks = false;          // another server has taken over: is it there at all, whatever lease it has?
  bool stale = false;          // that was after it had left: its answer means nothing, and then it looks
  std::uint16_t failures = 0;  // in a row
  hold_id newest = 0;          // holds above it did not exist when the renewal was sent
  instant due = never;
  instant sent{};
};

struct owner_tag;

using owner_hook = boost::intrusive::set_base_hook<boost::intrusive::tag<owner_tag>,
                                                   boost::intrusive::link_mode<boost::intrusive::safe_link>,
                                                   boost::intrusive::optimize_size<true>>;

// What one owner has on one name: its holds and its request.
struct owner_state : owner_hook {
  static constexpr unsigned most_modes = 2;
  static constexpr std::size_t most_holds = std::size_t{1} << 20;  // of one owner on one lock

  explicit owner_state(name_machine& name, std::uint64_t number);
  ~owner_state();
  owner_state(owner_state const&) = delete;
  owner_state& operator=(owner_state const&) = delete;

  int live(unsigned char mode) const { return live_[mode]; }
  int live() const { return live_[0] + live_[1]; }
  int const* live_by_mode() const { return live_.data(); }

  hold& add(std::unique_ptr<hold> made);
  std::unique_ptr<hold> end(hold& ended);  // forgets it
  void lose(hold& lost);                   // keeps it, as lost, until its owner asks
  hold* find(hold_id id);
  hold* latest(unsigned char mode);  // the newest that no lease has, lost ones included
  // The longest time that the live holds of a mode need, in milliseconds; a watchdog hold counts what a renewal would
  // give it; with its lock delay. `except` is left out.
  std::int64_t longest(unsigned char mode, instant now, config const& settings, hold const* except = nullptr) const;
  instant latest_deadline() const;

  // As new, for another owner perhaps, in the memory that it has.
  static void renew(std::unique_ptr<owner_state>& state, name_machine& name, std::uint64_t number);

  bool idle() const {
    return holds.empty() && !ask_->under_way() && behind.empty() && queued == 0 && !renewing() && !in_line;
  }
  bool renewing() const {
    return (renewals_[0] && renewals_[0]->under_way) || (renewals_[1] && renewals_[1]->under_way);
  }
  // Made when a mode is first renewed: most owners are waiters.
  renewal& renewal_of(unsigned char mode);
  renewal* known_renewal(unsigned char mode) const { return renewals_[mode].get(); }
  bool in_outbox() const { return ask_.place() && ask_.place()->in_outbox(); }
  // Something was asked for that lasts so long on the server.
  void lasts_until(instant end) { over_at = std::max(over_at, end); }

  name_machine& of;
  std::uint64_t const owner;
  std::uint64_t field;                        // under whose number the server has it; see tenure
  std::unique_ptr<std::string const> client;  // adopted: the other client whose number that is; null: ours
  few<std::unique_ptr<hold>> holds;           // in the order of their grants
  own_request ask_;
  instant left_at{};  // when the first copy of its last request left that is over
  boost::intrusive::list<operation, boost::intrusive::constant_time_size<false>>
      behind;                        // wait until the request under way was answered
  std::unique_ptr<own_channel> own;  // while it waits, for kinds whose waiters have channels of their own
  milliseconds line_time{0};         // with which it entered the server's queue
  instant over_at{};                 // whatever the server had of it has ended by then, by its lease
  operation* waits = nullptr;        // the first of its operations in the queue of the name
  unsigned queued = 0;               // how many there are
  bool parked = false;               // see own_channel_waiters::park
  bool holds_now = false;            // stands among the holders of the name
  bool in_line = false;              // the server may have it in a queue, or a claim of it

 private:
  std::array<int, most_modes> live_{};
  std::array<std::unique_ptr<renewal>, most_modes> renewals_;
};

// A list of owners by one of the hooks of their requests.
template <class Hook>
struct by_request {
  using hook_type = Hook;
  using hook_ptr = hook_type*;
  using const_hook_ptr = hook_type const*;
  using value_type = owner_state;
  using pointer = value_type*;
  using const_pointer = value_type const*;

  static hook_ptr to_hook_ptr(value_type& state) { return state.ask_.place(); }
  static const_hook_ptr to_hook_ptr(value_type const& state) { return state.ask_.place(); }
  static pointer to_value_ptr(hook_ptr hook) { return static_cast<placed_request*>(hook)->of; }
  static const_pointer to_value_ptr(const_hook_ptr hook) { return static_cast<placed_request const*>(hook)->of; }
};

template <class Hook>
using requests_list = boost::intrusive::list<owner_state, boost::intrusive::function_hook<by_request<Hook>>,
                                             boost::intrusive::constant_time_size<false>>;

// The owners of a name. Most names have one or none: then this takes no memory of its own.
class owner_set {
  struct owner_of {
    using type = std::uint64_t;
    type operator()(owner_state const& state) const { return state.owner; }
  };
  using tree =
      boost::intrusive::set<owner_state, boost::intrusive::base_hook<owner_hook>,
                            boost::intrusive::key_of_value<owner_of>, boost::intrusive::constant_time_size<false>>;

 public:
  // For one who is not there yet, as long as nothing else changes.
  using place = tree::insert_commit_data;

  owner_set() = default;
  ~owner_set() { all_.clear_and_dispose(std::default_delete<owner_state>()); }
  owner_set(owner_set const&) = delete;
  owner_set& operator=(owner_set const&) = delete;

  owner_state* find(std::uint64_t owner) const;
  // Null: it is not there, and `where` says where it would be.
  owner_state* find(std::uint64_t owner, place& where);
  owner_state& insert(std::unique_ptr<owner_state> state, place const& where);
  std::unique_ptr<owner_state> extract(owner_state& state);

  bool empty() const { return all_.empty(); }
  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }

 private:
  mutable tree all_;
};

// What idle owners, ended holds and answered requests leave behind.
class spare_storage {
 public:
  spare_storage();
  owner_state& make(owner_set& all, owner_set::place const& where, name_machine& name, std::uint64_t owner);
  // \pre it is idle.
  void take(owner_set& all, owner_state& ended) noexcept;

  spare_list<hold> holds;
  spare_list<placed_request> requests;

 private:
  spare_list<owner_state> owners_;
};

// The owners of a client that were looked for last: a call looks for its own several times, and one who was passed a
// lock comes to release it.
class recent_owners {
 public:
  owner_state* find(owner_set const& in, std::uint64_t owner) const {
    for (auto const& [state, of] : last_)
      if (of == &in && state->owner == owner) return state;
    return nullptr;
  }
  void note(owner_set const& in, owner_state& state) {
    if (last_[0].first == &state) return;
    last_[1] = std::exchange(last_[0], {&state, &in});
  }
  // It goes.
  void forget(owner_state const& state) {
    for (auto& one : last_)
      if (one.first == &state) one = {};
  }
  void forget(owner_set const& all) {
    for (auto& one : last_)
      if (one.second == &all) one = {};
  }

 private:
  std::pair<owner_state*, owner_set const*> last_[2]{};
};

// The requests of one name that others of this client may have to wait for: what ends a hold, what has gone by the
// direct lane, what leaves something to be repaired, and what nobody waits for any more. Most requests are tries that
// their callers still want, as many as there are waiters: those are not among them.
class active_requests {
 public:
  // The request of this owner has begun, or changed.
  void note(owner_state& state);
  void forget(owner_state& state);

  // Something of this name was sent that nobody awaits any more, and its answer decides whether the lock is free for
  // this mode: a new try would find this client's own remains.
  bool in_doubt(kind::traits const& rules, unsigned char mode, owner_state const* except = nullptr) const;
  // It left by then.
  bool in_doubt_from(instant when, kind::traits const& rules, unsigned char mode) const;
  bool release_sent(std::optional<unsigned char> mode = std::nullopt) const;
  // The release of the last hold of another owner still waits to be sent.
  owner_state* unsent_release(owner_state const& except);
  // Another owner's release is under way that nobody waits for.
  bool dropped_release(owner_state const& except) const;
  // A force-unlock has run: whether a try of the direct lane ran before it nobody knows.
  void doubt_direct_tries();

 private:
  requests_list<active_hook> all_;
};

}  // namespace latchkey::detail
