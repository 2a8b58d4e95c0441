#pragma once

#include <machine/connections.hpp>
#include <machine/context.hpp>
#include <machine/home.hpp>
#include <machine/request_writer.hpp>
#include <wire/cluster.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

namespace latchkey::detail {

// Of the slots that servers send elsewhere: each once in a while. Nodes that send channels to each other are not
// believed in a loop.
class followed_slots {
 public:
  bool may_follow(std::uint16_t slot, instant now);

 private:
  std::unordered_set<std::uint16_t> lately_;
  instant forgotten_at_{};
};

// What is said on the message connection of a session: which channels are asked for, and what the server sends.
class message_lane {
 public:
  message_lane(context& shared, home& at, connections& links, writer_user& user)
      : shared_(shared), at_(at), links_(links), user_(user) {}

  // Channels are those of the slots that the server has, from the next connection on.
  void send();
  void answered(link& link, reply& answer);
  void ended() { asked_ = false; }
  // Is SUBSCRIBE allowed?
  void ask(link& link);
  // That is not answered yet.
  bool asked() const { return asked_; }

 private:
  void say_of_channel(link& lane, sent_call::type what);
  void on_channel_elsewhere(link& link, redirection const& to);
  void on_may_subscribe(std::string_view refused);
  std::string own_channel() const { return "redisson_lock__channel:{" + shared_.client_id + "}"; }

  context& shared_;
  home& at_;
  connections& links_;
  writer_user& user_;
  bool asked_ = false;
  followed_slots followed_;
  words command_;
};

}  // namespace latchkey::detail
