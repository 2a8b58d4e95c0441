#pragma once

#include <machine/timer_queue.hpp>

#include <boost/intrusive/list.hpp>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace latchkey::detail {

struct context;

// Somebody who wants the messages of one channel.
class listener : public boost::intrusive::list_base_hook<> {
 public:
  // off: not listening. asked: not yet confirmed. on: messages arrive. refused: the server does not let us.
  enum class view : unsigned char { off, asked, on, refused };

  virtual void on_confirmed() = 0;  // also after every reconnect: a message may be missing
  virtual void on_message(std::string_view payload) = 0;
  virtual void on_refused() = 0;

  view listening() const { return view_; }

 protected:
  ~listener() = default;

 private:
  friend class subscriptions;
  view view_ = view::off;
};

// Which channels are wanted, and which of them the server has confirmed. One connection carries them all.
class subscriptions {
 public:
  explicit subscriptions(context& shared) : shared_(shared) {}

  void want(std::string const& channel, listener& who);
  void drop(std::string const& channel, listener& who);

  // Asks for it again if it was refused: rights may have changed.
  void ask_refused(std::string const& channel);

  bool wanted() const { return !channels_.empty(); }
  std::size_t size() const { return channels_.size(); }

  // --- the connection ---
  void connected();  // asks for every wanted channel anew
  // Nothing is confirmed any more. `unreliable`: nobody is to wait for a confirmation, since none lasts.
  void disconnected(bool unreliable = false);
  // Commands to send now: SUBSCRIBE and UNSUBSCRIBE, one channel each, in order.
  struct command {
    bool subscribe;
    std::string channel;
  };
  bool pending() const { return !unsent_.empty(); }
  std::vector<command> take_unsent();
  void confirmed(std::string_view channel);
  void refused_by_server(std::string_view text);  // the oldest SUBSCRIBE without an answer
  // The same is elsewhere, or may be: it is asked for again when more is known of that.
  std::string oldest_asked() const { return asked_.empty() ? std::string() : asked_.front(); }
  void put_off();
  void ask_again();
  // The server sends no more of it. False: it was asked for that.
  bool ended_by_server(std::string_view channel);
  void message(std::string_view channel, std::string_view payload);

 private:
  struct entry {
    boost::intrusive::list<listener> listeners;
    listener::view state = listener::view::off;
  };
  void ask(std::string const& channel);
  bool answered();
  listener::view seen(entry const& subscription) const;
  void set_state(entry& subscription, listener::view state);

  context& shared_;
  std::unordered_map<std::string, entry> channels_;
  std::vector<command> unsent_;
  std::vector<std::string> put_off_;
  std::deque<std::string> asked_;  // channels of the SUBSCRIBEs without an answer
  // How many of them there are, sent or not, by channel: only the answer to the last one counts.
  std::unordered_map<std::string, unsigned> unconfirmed_;
  bool up_ = false;
  bool unreliable_ = false;     // the last connections were lost soon, one after the other
  bool refusal_noted_ = false;  // of this connection
};

}  // namespace latchkey::detail
