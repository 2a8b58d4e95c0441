#pragma once

#include <machine/holders.hpp>
#include <machine/lock_name.hpp>
#include <machine/operation.hpp>
#include <machine/owner_state.hpp>
#include <machine/streak.hpp>
#include <machine/subscriptions.hpp>
#include <machine/succession.hpp>
#include <machine/tenure.hpp>

#include <boost/container/options.hpp>
#include <boost/container/vector.hpp>
#include <boost/intrusive/list.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace latchkey::detail {

// The callers of one client who wait for a name, in the order of their arrival. Only the head talks to the server,
// unless each has a channel of its own.
class wait_queue {
 public:
  wait_queue() = default;
  // `so_far`: the number of calls that joined one like it before.
  explicit wait_queue(std::uint64_t so_far) : tickets_(so_far) {}

  // A name is held in many copies: the size is kept beside the other small number.
  using list = boost::intrusive::list<operation, boost::intrusive::constant_time_size<false>>;
  using iterator = list::iterator;

  bool empty() const { return all_.empty(); }
  std::size_t size() const { return size_; }
  operation& head() { return all_.front(); }
  operation const& head() const { return all_.front(); }
  bool is_head(operation const& call) const { return call.queued && &all_.front() == &call; }
  // There is a head, it waits, and nothing of its owner is under way.
  bool head_idle() const;
  // Who came just before this one. \pre somebody did.
  operation const& before(operation& call) { return *std::prev(from(call)); }

  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  iterator from(operation& call) { return all_.iterator_to(call); }
  bool any_once() const { return once_ > 0; }
  // Where to look for calls that ask once. They are the last that came, if others wait, but for those that have waited.
  iterator first_once();
  // Its wait is over: from now on it asks once.
  void wait_no_longer(operation& call);

  void join(operation& call);
  // \pre it stands here.
  void leave(operation& call);

  // The server has said, or would say, that another has it.
  void note_busy() { ++busy_answers_; }
  bool busy_since_it_joined(operation const& call) const { return call.joined < busy_answers_; }
  // Of the call that joined last.
  std::uint64_t ticket() const { return tickets_; }

 private:
  list all_;
  std::uint32_t size_ = 0;
  std::uint32_t once_ = 0;  // calls that ask once
  std::uint64_t busy_answers_ = 0;
  std::uint64_t tickets_ = 0;
};

// What the waiters of a name look at, and what they ask its machine for.
struct waited_name : lock_name {
  using lock_name::lock_name;

  // One request for this waiter.
  virtual void send_acquire(operation& call, bool may_go_direct) = 0;
  // A release that still waits to be sent becomes a hand-off to the head of the queue.
  virtual void hand_over(owner_state& leaving, operation& head, bool may_go_direct) = 0;
  // The lock goes on from an owner who holds it no more, without the server.
  virtual void pass_on(owner_state& from, operation& to) = 0;
  // Something may have taken away what the server shows.
  virtual void doubt() = 0;
  virtual void complete(operation& call, error_code error = {}, std::string_view text = {}) = 0;

  owner_state* known(std::uint64_t owner) const;
  // Zero: it is not.
  instant trusted_until(std::uint64_t owner, hold_id which) const;
  // Under whose number the server has what this owner holds. What stands under its own may be another one's turn, and
  // be back before a question about it is answered: then under one that stands for nothing.
  std::uint64_t shown_as(std::uint64_t owner) const;
  // What the server said of an owner, seen with what was done without it.
  void correct(operation& query) const;
  // It has what it asked for: all but its end.
  void grant(operation& call);

  // Does what is under way decide whether the lock is free for this mode?
  bool in_doubt(unsigned char mode) const { return active_.in_doubt(kind_->rules(), mode); }
  std::string field_of(owner_state const& state, unsigned char mode) const {
    std::string made;
    add_field(made, state, mode);
    return made;
  }
  void add_field(std::string& out, owner_state const& state, unsigned char mode) const {
    kind_->add_field(out, state.client ? *state.client : shared_.client_id, state.field, mode);
  }

  owner_set owners_;
  active_requests active_;
  holders holders_{*this};
  tenure tenure_{*this};
  reign reign_;

 protected:
  ~waited_name() = default;
};

// What woke a waiter, as long as no try has followed it.
enum class wake_up : unsigned char {
  none,
  message,
  confirmation,  // the try under way may have run before the server listened for us
  hint,
  turn,        // it is head now, while its owner has another request under way
  release,     // the lock is really released first, at the end of a streak
  taken_back,  // whoever was woken gave up before his try was sent
  recalled,    // its try was taken out of the outbox
  end_moved,   // a hold ends earlier than it was told
};

// The callers of one client who wait for a name, and when they ask the server. What wakes a waiter is a message, a hint
// (the time at which the server said that it is worth a look) or an answer to somebody else of this client.
class waiters {
 public:
  explicit waiters(waited_name& name) : of_(name), queue_(name.shared_.last_ticket) {}
  waiters(waiters const&) = delete;
  waiters& operator=(waiters const&) = delete;

  wait_queue const& queue() const { return queue_; }
  wait_queue& queue() { return queue_; }
  streak& turns() { return streak_; }
  // How the lock goes on to the head.
  succession onward() const { return {of_, queue_, streak_}; }

  // \throws std::bad_alloc: nothing has changed.
  virtual void make_room() {}
  // Nothing is listened to, and nobody waits.
  virtual bool idle() const { return queue_.empty(); }
  // Nothing is known either that new ones would not know.
  virtual bool forgettable() const { return queue_.empty() && streak_.over(of_.shared_.now); }
  // The server has granted it to one of them, or to somebody who did not wait.
  virtual void had() {}
  // The client ends: what waits has been told, and nothing is listened to any more.
  virtual void close() {}
  // Another server has the name: what was listened to there is listened to here.
  virtual void move(home&) {}

  // A caller who holds nothing: behind those who came before.
  virtual void join(owner_state& state, operation& call) = 0;
  // Would this call, which has not begun, have to stay here, or be answered, before the server is asked?
  virtual bool keeps_back(operation const&) const { return false; }
  // Does nothing for who does not stand here.
  virtual void leave(operation& call);
  // The head left without being granted, or is the first who waits behind a grant: nobody looks after the lock now.
  // `slept`: that one, if it was told that somebody else has the lock, and gave up asleep.
  virtual void new_head(operation const* /* slept */ = nullptr) {}
  // An answer has come: those try who waited for the name to be resolved, or who hear no messages.
  virtual void wake() = 0;

  // It has what it asked for, and waits no more.
  void served(operation& call);
  // So have all who waited when it was asked for, and who keep nothing.
  void serve_all(std::uint64_t up_to);
  // Other calls of this owner need not wait for it: they re-enter, or never could.
  void let_in_others(owner_state& holder);

  // --- what became of the try of a waiter ---
  // Somebody else has it; `hint` is when his lease ends, in milliseconds from now.
  void refused(owner_state& state, request const& was, std::int64_t hint);
  // The server would not say who has it. Who has only left the lock to others does not know either.
  void not_told(operation& call);
  // The trouble may pass: it looks again after this pause.
  virtual void put_off(owner_state& state, request const& was, milliseconds pause) = 0;
  // It was granted until `deadline`, and others are behind it. `heard`: a message had come while it tried.
  virtual void granted(request const&, outcome const&, instant, bool) {}
  // The request of this owner is over.
  virtual void finished(owner_state&) {}
  // A release of this owner was answered.
  virtual void released(owner_state const&, unsigned char, outcome const&) {}
  // A waiter, or one of its calls, has given up although it was trying.
  virtual void gave_up(owner_state&) {}

  // --- what was heard and not followed ---
  virtual bool heard() const { return false; }
  virtual void remember(wake_up) {}
  // The try of this waiter will not be sent.
  virtual void recalled(owner_state&) {}
  // The head is granted with the release that it waits for.
  virtual void paired() {}

  // Calls without a wait have their answer as soon as somebody else was found, or made, the holder.
  void finish_once_calls(std::uint64_t up_to, unsigned modes = ~0u, std::int64_t least = 0, error_code const& why = {},
                         std::string_view text = {});
  bool parked(operation const& call) const { return !call.tried && of_.in_doubt(call.mode); }

 protected:
  ~waiters() = default;

  kind::traits const& rules() const { return of_.kind_->rules(); }
  // Somebody is asked already, and the head knows what the server would say. True: this call is completed.
  bool told_at_once(owner_state& state, operation& call);
  void enter(operation& call);
  // Without a try of its own it is known what the server would say: busy.
  void note_told(operation& head);
  // It leaves the lock to others: nobody has said that one of them has it.
  void note_waiting(operation& head);
  // Nor would they be told anything else than the head, which waits for the trouble to pass.
  void refuse_once_calls(error_code const& why, std::string_view text) {
    finish_once_calls(queue_.ticket(), ~0u, 0, why, text);
  }
  bool deaf(listener::view heard) const;
  milliseconds sleep_time(std::int64_t hint, bool deaf, unsigned polls) const;
  virtual void told_busy(owner_state& state, request const& was, std::int64_t hint, bool stays, bool was_head) = 0;

  waited_name& of_;
  wait_queue queue_;
  streak streak_;
};

class shared_channel_waiters;

// What wakes the head of those who share a channel: made when somebody has to wait, and kept until the channel is given
// up: a lock that is only held has none. Kinds that only look keep theirs.
class shared_channel final : public listener {
 public:
  explicit shared_channel(shared_channel_waiters& in);
  ~shared_channel();

  void on_confirmed() override;
  void on_message(std::string_view payload) override;
  void on_refused() override;

  timer_node hint;    // when the head tries again without a message
  timer_node linger;  // when the channel is given up

 private:
  shared_channel_waiters& in_;
};

// They share one channel: the head of the queue talks to the server, for all.
class shared_channel_waiters final : public waiters {
 public:
  using waiters::waiters;

  void make_room() override;
  bool idle() const override { return waiters::idle() && listening() == listener::view::off; }
  bool forgettable() const override;
  void close() override;
  void move(home& from) override;
  void join(owner_state& state, operation& call) override;
  bool keeps_back(operation const& call) const override;
  void leave(operation& call) override;
  void new_head(operation const* slept = nullptr) override;
  void wake() override;
  void put_off(owner_state& state, request const& was, milliseconds pause) override;
  void granted(request const& was, outcome const& answer, instant deadline, bool heard) override;
  void released(owner_state const& state, unsigned char mode, outcome const& answer) override;
  bool heard() const override { return unfollowed_ != wake_up::none; }
  void remember(wake_up why) override { unfollowed_ = why; }
  void recalled(owner_state&) override { remember(wake_up::recalled); }
  void paired() override;
  void had() override;

  // --- time ---
  void on_hint();
  void on_linger();

 private:
  friend class shared_channel;
  using view = listener::view;

  void on_confirmed();
  void on_message(std::string_view payload);
  void on_refused();

  void told_busy(owner_state& state, request const& was, std::int64_t hint, bool stays, bool was_head) override;
  void try_head(bool may_go_direct = false);
  void try_run();
  void wait_for_ours();
  void wait_for_field();
  bool field_taken(std::uint64_t owner, unsigned char mode) const;
  void doubt();
  void try_beside(operation& call, bool may_go_direct);
  void subscribe();
  void sleep_until_hint(std::int64_t hint);
  void look_soon();
  void look_later(outcome const& refused);
  void look_after_release(outcome const& answer);
  // A release of this client is sent only when others shall have it.
  bool leaves_it() const { return streak_.ended() || of_.tenure_.on(); }
  bool leaves_to_others(operation& head);
  void let_others_first();
  std::string channel_name() const { return of_.kind_->channel(of_.name_, {}); }
  shared_channel& channel();
  view listening() const { return channel_ ? channel_->listening() : view::off; }
  // The head tries again without a message.
  bool looks() const { return channel_ && channel_->hint.is_linked(); }
  void look_at(instant when) { of_.shared_.timers.set(channel().hint, when); }
  void look_no_more();

  [[no_unique_address]] rotation rotation_;  // room behind it for a byte
  wake_up unfollowed_ = wake_up::none;
  std::unique_ptr<shared_channel> channel_;
};

// They stand in a queue on the server (kind::traits::own_channel): each enters it when it comes, listens on a channel
// of its own, tries for itself, and leaves that queue when it gives up.
class own_channel_waiters final : public waiters {
 public:
  using waiters::waiters;

  void make_room() override;
  bool forgettable() const override { return waiters::forgettable() && parked_.empty(); }
  void move(home& from) override;
  void join(owner_state& state, operation& call) override;
  void leave(operation& call) override;
  void wake() override;
  void put_off(owner_state& state, request const& was, milliseconds pause) override;
  void finished(owner_state& state) override { park(state); }
  void gave_up(owner_state& state) override;
  void recalled(owner_state& state) override;

 private:
  friend class own_channel;

  void told_busy(owner_state& state, request const& was, std::int64_t hint, bool stays, bool was_head) override;
  static operation* waiter_of(owner_state& state);
  void wait(owner_state& state, unsigned char mode, std::int64_t hint);
  instant time_to_look(std::int64_t hint, bool deaf, unsigned polls) const;
  void park(owner_state& state);
  // Something was heard that concerns this one alone.
  void wake(owner_state& state);

  // Owners whose waiters look again after the next answer: see park.
  boost::container::vector<std::uint64_t, void,
                           boost::container::vector_options_t<boost::container::stored_size<std::uint32_t>>>
      parked_;
};

// What wakes one of them: a channel and a timer for this owner alone, as long as it waits.
class own_channel final : public listener {
 public:
  own_channel(own_channel_waiters& in, owner_state& of, std::string channel);
  ~own_channel();

  void on_confirmed() override;
  void on_message(std::string_view payload) override;
  void on_refused() override;
  void on_hint();
  void ask_again();  // where it is refused
  void move(home& from);

  bool dirty = false;  // something was heard that no try has followed yet
  timer_node hint;     // when it tries again without a message

 private:
  own_channel_waiters& in_;
  owner_state& of_;
  std::string const channel_;
};

// Those of either kind.
class either_waiters {
 public:
  explicit either_waiters(waited_name& name);

  waiters& operator*() const { return *these_; }

 private:
  std::variant<std::monostate, shared_channel_waiters, own_channel_waiters> either_;
  waiters* these_ = nullptr;  // the one that the kind wants
};

// A name and its waiters. Most names are only held: these are made when they are asked for, and go at the end of a step
// after which they know nothing.
class name_with_waiters : protected waited_name {
 public:
  using waited_name::waited_name;

  wait_queue const& queue() const { return made_ ? (**made_).queue() : nobody(); }

 protected:
  ~name_with_waiters();

  waiters& waiting() { return made_ ? **made_ : make_waiting(); }
  // Somebody waits, or it is listened for whoever waits next.
  bool waited_for() const { return made_ && !(**made_).idle(); }
  // At the end of a step.
  void forget_waiting() noexcept {
    if (made_ && waiting().forgettable()) give_back_waiting();
  }

 private:
  waiters& make_waiting();
  void give_back_waiting() noexcept;
  static wait_queue const& nobody();

  std::unique_ptr<either_waiters> made_;
};

}  // namespace latchkey::detail
