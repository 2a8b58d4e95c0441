#pragma once

#include <machine/actions.hpp>
#include <server_model/server.hpp>
#include <simulation/clocks.hpp>
#include <simulation/randomness.hpp>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace latchkey::simulation {

using namespace model;  // the server

using detail::role;

char const* name_of(role as);

// Bytes on their way, or the end of a connection.
struct segment {
  moment at;
  std::string bytes;
  bool end = false;
};

// One connection: two ends and what is between them.
struct wire {
  std::uint32_t number = 0;
  std::size_t client = 0;
  std::uint32_t serial = 0;
  role as = role::shared;
  server::handle at = 0;    // 0: the server does not know it yet, or no more
  bool client_open = true;  // the client has not closed it
  bool lendable = false;    // callers may borrow it, and the engine does not look
  bool dead = false;        // it has ended, and nobody has looked
  bool broken = false;      // cut: whatever is sent from now on is lost
  bool silent = false;      // nothing reaches the client any more, and what it sends is late
  moment late_until = 0;
  std::deque<segment> up, down;
  moment last_up = 0, last_down = 0;
  std::uint32_t sent = 0;
};

class network_user {
 public:
  // At the client.
  virtual void heard(wire& on, std::string_view bytes) = 0;
  virtual void ended(wire& on) = 0;
  // At the server.
  virtual void reached(wire& on, std::string_view bytes) = 0;
  virtual void closed(wire& on) = 0;

 protected:
  ~network_user() = default;
};

// An event. What it is about depends on its type.
struct event {
  enum class type : unsigned char { to_server, to_client, turn, open };
  moment at;
  std::uint64_t order;
  type what;
  std::size_t client;
  std::uint32_t number;  // of the wire, or the serial
};

// All wires, and everything that is to happen at a time of its own, earliest first.
class network {
 public:
  network(std::uint64_t seed, bool jitter, bool split, network_user& user);

  void post(event::type what, moment at, std::size_t client, std::uint32_t number);
  void post_again(event const& late, moment at);
  moment next() const { return events_.empty() ? endless : events_.front().at; }
  event take();
  std::size_t waiting() const { return events_.size(); }

  wire& add(std::size_t client, std::uint32_t serial, role as);
  wire* find(std::size_t client, std::uint32_t serial);
  wire* find(std::size_t client, role as);  // the one in use
  bool deceives(std::size_t client) const;  // a connection of his is silent, and he does not know
  wire* of_server(server::handle which);
  wire& at(std::uint32_t number) { return *wires_[number]; }
  void known_as(wire& one, server::handle which);

  void send_up(wire& on, std::string&& bytes, moment now);
  void send_down(wire& on, std::string&& bytes, moment now);
  void end_down(wire& on, moment now);       // the client is told that it has ended
  void close_up(wire& on, moment now);       // the client has closed it
  void forget_server(wire& on, moment now);  // the server has ended it
  void hang_up(wire& on, moment now);        // the same, and what it has sent arrives before
  // The connection breaks. How many of the bytes on their way still arrive, and when, `chances` say.
  void cut(wire& on, dice& chances, moment now);
  // The client vanishes. What is on its way arrives, and then the end; or nothing more ever does.
  bool says_more(std::size_t client) const;  // bytes of his are on their way to the server
  void abandon(std::size_t client, bool unheard, moment now);
  void silence(wire& on, moment late_until);
  void hold_up(wire& on, moment length);
  void deliver(event const& what, moment now);

  moment longest_way() const { return longest_; }
  std::size_t bytes_on_the_way() const;

 private:
  moment way(wire& on, bool up);
  void send(wire& on, std::deque<segment>& to, moment& last, std::string&& bytes, moment now, bool up);
  void pop(std::deque<segment>& from, moment now, wire& on, bool up);

  std::uint64_t const seed_;
  bool const jitter_;
  bool const split_;
  network_user& user_;
  moment way_ = 0;
  moment longest_ = 0;
  std::vector<event> events_;  // a heap
  std::uint64_t order_ = 0;
  std::vector<std::unique_ptr<wire>> wires_;
  std::unordered_map<server::handle, std::uint32_t> by_handle_;
};

}  // namespace latchkey::simulation
