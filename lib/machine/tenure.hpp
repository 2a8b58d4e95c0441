#pragma once

#include <machine/lock_name.hpp>
#include <machine/owner_state.hpp>

#include <memory>

namespace latchkey::detail {

// What the server shows for this client under a name, in the field of one owner, from a grant to the sending of its
// release. As long as it lasts, callers of the client pass the lock on among themselves and take it again without
// asking the server: an owner whose turn it is stands there under the field of the one who was granted it.
// Rules: docs/safety.md, "Local turns".
class tenure {
 public:
  // What lasts no longer the server is not told.
  static constexpr milliseconds unnoticed{5};
  // What comes later than that is not one more in a row.
  static constexpr milliseconds in_a_row{100};

  explicit tenure(lock_name const& name) : of_(name) {}
  ~tenure();
  tenure(tenure const&) = delete;
  tenure& operator=(tenure const&) = delete;

  bool on() const { return of_.kind_->rules().turns && of_.shared_.settings.local_turns; }
  // Of a kind with several the one that an owner has alone: nothing else is passed on.
  unsigned char mode() const { return of_.kind_->rules().turn_mode; }
  // When the request of the last grant was first sent.
  instant began() const { return began_; }
  // Whose turn it is; null: there is no tenure.
  owner_state* holder() const { return at_; }
  bool is_of(owner_state const& state) const { return at_ == &state; }
  // This owner's field stands for another one's hold, or for a request of it that is not answered.
  bool lent(std::uint64_t owner) const { return borrower_of(owner) != nullptr; }
  owner_state* borrower_of(std::uint64_t owner) const {
    owner_state* const stands = borrower();
    return stands && stands->owner != owner && stands->field == owner ? stands : nullptr;
  }
  bool held() const { return at_ && at_->live(mode()) > 0; }
  // As far as anybody could say.
  bool certain() const { return at_ && !doubted_ && of_.shared_.now < until_; }
  // The server has said so since a streak could have begun.
  bool fresh() const;

  // --- what may be done without the server ---
  // The holder takes it once more.
  bool may_reenter(owner_state const& state, operation const& call) const;
  // `from` holds it no more, and has sent no release of it: may this caller have it?
  bool may_pass(owner_state const& from, operation const& call) const;
  // Counts what may be so. False: it is one of the first few in a row, which go by the server all the same, and so are
  // shown at once where that is done now and then.
  bool count_chance();
  // Then the next turn will be one, as far as it depends on that.
  bool warmed() const;
  // A hand-off on the server: nothing is left to pass on once a release was sent, and the old hold takes the new one
  // along if that is in its field.
  bool may_be_handed(owner_state const& from, owner_state const& to) const {
    return !on() || (is_of(from) && !lent(to.owner));
  }
  // Until when the hold lasts that begins so.
  instant end_of(operation const& call) const;
  void pass(owner_state& from, owner_state& to);
  // The holder has it more or less often than the server shows.
  void count_moved();
  // When the server is to be told what has lasted for a while; `never`: there is nothing to tell.
  instant confirm_at() const;
  // When this machine, whose tenure it is, looks at that.
  timer_node& due(name_machine& of);

  // --- requests of owners ---
  // A hold was granted with a request of which the first copy left at `asked`.
  void granted(owner_state& state, request const& was, instant until);
  // This request leaves now.
  void sent(owner_state& state, request const& asked);
  // The server has what the holder has.
  void confirmed(owner_state& state, request const& was, instant until);
  void renewed(owner_state& state, unsigned char in_mode, instant until);
  // Something may have taken it away: nobody's turn begins before a question that is sent later was answered.
  void doubt() { doubted_ = true; }
  void end() { at_ = nullptr; }
  // A hold of this owner is gone.
  void lost(owner_state& state, unsigned char in_mode);
  // This owner goes.
  void forget(owner_state& state);
  // How much longer than its lease is asked for, where others wait behind it.
  milliseconds beyond(operation const& call, std::size_t waiting) const;
  // An owner whose field is lent asks for a mode that others may have beside it: it has another one for that.
  void stand_in(owner_state& state, unsigned char in_mode);
  // It stands under a field that goes back as soon as nothing of it is there.
  bool will_settle(owner_state const& state) const {
    return state.client || (state.field != state.owner && !is_of(state));
  }
  // Nothing of this owner is on the server any more, or under way there: the field goes back.
  void settle(owner_state& state);

 private:
  // What only a lock has that could have gone on without the server: most are held and released.
  struct local_turns {
    owner_state* borrower = nullptr;  // who stands on the server under another one's field
    instant asked_at{};               // when something could last be done without the server
    unsigned asked = 0;               // how often that was in a row, up to one more than go by the server
    int turns = 0;                    // of this tenure
    instant told{};                   // when the copy was sent that was answered last
    instant moved{};                  // when what the holder has last changed
    timer_node due;
  };

  bool on(operation const& call) const;
  bool fits(operation const& call) const;
  local_turns& local();
  owner_state* borrower() const { return local_ ? local_->borrower : nullptr; }
  int turns() const { return local_ ? local_->turns : 0; }

  lock_name const& of_;
  owner_state* at_ = nullptr;
  std::unique_ptr<local_turns> local_;  // made with the first chance
  instant began_{};                     // when the request of the grant was first sent
  instant until_{};                     // the server has it until then, whatever happens
  int shown_ = 0;                       // the hold count that the server showed last
  bool passed_ = false;                 // since the server was asked
  bool doubted_ = false;
};

}  // namespace latchkey::detail
