#pragma once

#include <machine/connections.hpp>
#include <machine/context.hpp>
#include <machine/orphans.hpp>
#include <machine/plain_calls.hpp>
#include <machine/request_writer.hpp>

#include <span>
#include <string>
#include <string_view>

namespace latchkey::detail {

// Told by the session what concerns all names at once.
class session_user {
 public:
  virtual void trouble(error_code const& why, std::string_view text, bool transient) = 0;
  // A force-unlock, sent at that time, has removed whoever had the name.
  virtual void forced(operation const& call, instant sent) = 0;
  virtual void forces(operation const& call) = 0;  // it leaves now
  virtual std::uint64_t shown_as(operation const& call) const = 0;
  virtual void correct(operation& query) const = 0;
  virtual bool needs_server() const = 0;  // somebody waits, holds, or has something to say
  // By which names so far are acquired and released; none twice.
  virtual std::span<script const* const> scripts() const = 0;

 protected:
  ~session_user() = default;
};

// What a client has to do with one server: brings the connections to it, what they left behind, who writes requests and
// the plain calls together, none of which knows another. Itself it knows what is said on the message connection.
class session final : private connections_user, private orphans_user, private plain_calls_user {
 public:
  session(context& shared, connections::identity who, session_user& user);

  // --- the engine ---
  void turn(io_actions& io);
  void opened(std::uint32_t serial) { links_.opened(serial); }
  void open_failed(std::uint32_t serial, error_code const& why, std::string_view text) {
    links_.open_failed(serial, why, text);
  }
  void received(std::uint32_t serial, std::string_view bytes);
  void broken(std::uint32_t serial, error_code const& why) { links_.broken(serial, why); }
  void on_link_timer(link& one) { links_.on_timer(one); }
  void on_timer() { shared_.out->turn = true; }

  // --- the direct lane ---
  void want_direct();
  bool direct_idle() const;
  void lend_to(owner_state& one) { writer_.lend(links_.of(role::direct), one); }
  void lend_to(operation& plain) { writer_.lend(links_.of(role::direct), plain); }
  std::string& lane_bytes() { return writer_.lane_bytes(); }
  std::uint32_t lane_serial() const { return links_.of(role::direct).serial; }
  bool lent(std::uint32_t serial) const { return links_.lent(serial); }
  bool lane_answer(reply const& answer);  // true: lane_bytes() are to be sent again
  void lane_failed(std::uint32_t serial, error_code const& why);

  // --- plain calls ---
  void connect_begins();
  plain_calls& plain() { return plain_; }
  void forget_plain_calls(error_code const& why);  // closing

  bool quiet() const;
  // Nor is any other answer awaited, nor a connection being made; or before that a pause has to end.
  bool settled() const;

 private:
  void on_reply(link& one, reply& answer);
  void end_connects();

  void on_up(link& one) override;
  void on_down(link const& one, remains&& left, error_code const& why, std::string_view text) override;
  void on_trouble(error_code const& why, std::string_view text, bool transient) override;
  void on_kill_allowed() override { orphans_.allow(); }
  void on_kill_refused(std::string_view text) override { orphans_.refuse(text); }
  void on_unknown(script const& text) override { writer_.miss(text); }
  std::span<script const* const> scripts() const override { return user_.scripts(); }
  void kill(orphan const& gone) override;
  void forced(operation const& call, instant sent) override { user_.forced(call, sent); }
  void forces(operation const& call) override { user_.forces(call); }
  std::uint64_t shown_as(operation const& call) const override { return user_.shown_as(call); }
  void correct(operation& query) const override { user_.correct(query); }
  void forget(operation& call) override;

  // The message connection.
  void send_subscriptions();
  void on_message_reply(link& one, reply& answer);
  void ask_to_subscribe(link& one);
  void on_may_subscribe(std::string_view refused);

  context& shared_;
  session_user& user_;
  timer_node timer_;
  connections links_;
  plain_calls plain_{shared_, *this};
  orphans orphans_{shared_, *this, plain_, timer_};
  request_writer writer_{shared_, plain_, timer_};
  bool direct_wanted_ = false;
  bool subscribe_asked_ = false;  // may_subscribe is not answered yet
  words command_;
};

}  // namespace latchkey::detail
