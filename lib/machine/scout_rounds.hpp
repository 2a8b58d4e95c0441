#pragma once

#include <codec/command_writer.hpp>
#include <machine/actions.hpp>
#include <machine/context.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::detail {

// What scouts have in common. In a round they ask one after the other, until an answer can be used.
class scout_rounds {
 public:
  // nothing: nobody needs a server. watch: who has the names may change. press: somebody who has them is missing.
  enum class need : unsigned char { nothing, watch, press };
  static constexpr milliseconds soon{100};  // between two rounds, at least

  scout_rounds(scout_rounds const&) = delete;
  scout_rounds& operator=(scout_rounds const&) = delete;

  // --- the engine ---
  virtual void opened(std::uint32_t serial) = 0;
  virtual void open_failed(std::uint32_t serial, error_code const& why, std::string_view text) = 0;
  virtual void received(std::uint32_t serial, std::string_view bytes) = 0;
  virtual void broken(std::uint32_t serial) = 0;
  virtual void on_timer() = 0;

  // Nobody is asked until a turn says that somebody has to be.
  bool asleep() const { return wanted_ == need::nothing; }
  // Something may have changed: somebody is asked soon.
  void hurry();

 protected:
  explicit scout_rounds(context& shared);
  ~scout_rounds() { shared_.timers.drop(timer_); }

  // The next one of this round.
  virtual void ask_next() = 0;
  // Nobody has an answer that can be used, and why.
  virtual void nobody_knows(error_code const& why, std::string_view text, bool transient) = 0;

  // True: a round is to begin.
  bool turn_begins(need wanted);
  void turn_ends(io_actions& io, instant next);
  void round_begins();
  // `usual`: when the next one begins while nothing is missing.
  void round_ends(milliseconds usual);
  void round_ends_in_vain();
  // This one's answer cannot be used: the next one is asked.
  void failed(std::string_view kind, node_address const& at, error_code const& why, std::string_view text);

  template <class... Words>
  void say(std::string& out, Words const&... said) {
    command_.say(said...);
    append_command(out, command_);
    shared_.out->turn = true;
  }
  void say_auth(std::string& out, std::string const& username, std::string const& password);
  // A server that does not know AUTH repeats its arguments.
  static std::string_view refusal_of_auth(std::string_view said);
  void send(std::uint32_t serial, std::string& out, io_actions& io);

  context& shared_;
  bool asking_ = false;    // a round is under way
  instant began_{};        // the last one
  instant again_at_{};     // when the next one begins, if it is needed
  unsigned failures_ = 0;  // rounds in a row
  error_code why_;         // what says most of why nobody has answered in this round
  std::string words_;
  need wanted_ = need::nothing;
  std::vector<std::uint32_t> closing_;

 private:
  timer_node timer_;
  words command_;
};

}  // namespace latchkey::detail
