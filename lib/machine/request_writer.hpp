#pragma once

#include <machine/context.hpp>
#include <machine/home.hpp>
#include <machine/link.hpp>
#include <machine/outbox.hpp>
#include <wire/cluster.hpp>

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace latchkey::detail {

// What the server refuses for the time being, by the first of its words: everything (LOADING, BUSY), or what takes
// memory or changes data (OOM, READONLY), of which only a grant shows that it is over.
struct sickness {
  enum part : unsigned char { all, writes, parts };
  std::array<std::string, parts> of;
};

// Told where else a name is.
class writer_user {
 public:
  // Where to ask instead; null: nobody knows yet.
  virtual home* redirected(redirection const& to) = 0;
  // Nobody has the slot, or replicas are not what was known of them.
  virtual void shaken() = 0;
  // The server says that it has a slot no more.
  virtual void misled() = 0;

 protected:
  ~writer_user() = default;
};

// Makes script calls of requests, for one server, and brings each of them its part of the answer. Knows which scripts
// the server has not, and since when it runs nothing. Bodies: request_writer.cpp, request_answers.cpp.
class request_writer {
 public:
  // `timer` makes the session take a turn.
  request_writer(context& shared, home& at, plain_listener& plain, timer_node& timer, writer_user& user)
      : shared_(shared), at_(at), plain_(plain), timer_(timer), user_(user) {}

  // Everything that was asked for in one turn leaves in one write, in as few script calls as there are full groups.
  void send(outbox& from, link& to);
  // `on`: where it came from.
  void answered(link& on, sent_call& call, reply& answer);
  // The end of a turn: are replicas to be asked about what was answered?
  void send_wait(link& to);

  // The server runs nothing at the moment.
  bool paused() const { return shared_.now < paused_until_; }
  void wake_after_pause() { shared_.timers.set_lazily(timer_, paused_until_); }
  // Asked once: the answers so far show that it is the wrong server.
  bool turned_away() { return std::exchange(turned_away_, false); }
  // It is sent whole next time.
  void miss(script const& text) { unknown_.insert(&text); }

  // --- the direct lane ---
  // May the other one's request leave in the call of the first?
  static bool leave_together(owner_state const& first, owner_state const& other, bool in_cluster);
  // \pre they leave together.
  void lend(link& lane, std::span<owner_state* const> owners);
  void lend(link& lane, operation& plain);
  std::string& lane_bytes() { return lane_out_; }
  bool lane_answer(link& lane, reply const& answer);  // true: lane_bytes() are to be sent again

 private:
  bool held_back(owner_state const& state) const;
  outbox::owner_list those_held_back(outbox::owner_list& list, bool are_releases, link const& to) const;
  void wake_later();
  bool may_send(link const& to) const;
  void send_groups(outbox& from, unsigned order, link& to);
  void send_renewals(outbox& from, link& to);
  void send_plain(outbox& from, link& to);
  void send_told(outbox& from, link& to);
  void write_call(link& to, sent_call&& call, std::span<item const> items);
  bool begin_script(words& command, script const& text);
  void script_words(sent_call& call, std::span<item const> items);
  void plain_words(sent_call& call);
  void make_lane_bytes(link& lane);
  void prepare_lane(sent_call& call);
  static bool still_wanted(sent_call const& call);
  void write_asking(link& to);

  // request_answers.cpp
  std::size_t replicas_needed();
  bool needs_replicas(sent_call const& call, reply const& answer);
  void wait_words(link& on);
  static item item_of(sent_call const& call, std::size_t i);
  void synced(link& on, reply const& said);
  void on_script(sent_call& call, reply const& answer, bool met = true, std::string_view why_not = {});
  void on_plain(sent_call& call, reply const& answer);
  void send_again(sent_call& call);
  bool goes_elsewhere(sent_call& call, std::string_view text);
  bool goes_apart(sent_call& call, std::string_view text);
  static void come_again(detour& of, outbox& at);
  void come_again(sent_call& call);
  void fell_ill(sickness::part what, server_error const& why, std::string_view text);
  void recovered(sickness::part what);
  void nothing_ran(sent_call& call, server_error const& why, std::string_view text);
  void pause();

  context& shared_;
  home& at_;
  plain_listener& plain_;
  timer_node& timer_;
  writer_user& user_;
  std::unordered_set<script const*> unknown_;  // scripts whose text goes next time
  bool turned_away_ = false;
  sickness sick_;
  unsigned pauses_ = 0;
  instant paused_until_{};
  std::string lane_out_;
  std::vector<item> items_;               // of the call that is being made
  std::vector<std::string> item_fields_;  // two of each
  words command_;
  std::string fields_;  // of a call's renewals, one after the other
  std::vector<std::size_t> field_ends_;
};

}  // namespace latchkey::detail
