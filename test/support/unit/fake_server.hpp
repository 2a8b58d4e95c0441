#pragma once

#include <codec/reply_reader.hpp>
#include <support/unit/fake_scripts.hpp>
#include <support/unit/fake_store.hpp>
#include <wire/script.hpp>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::test {

// A model of one Redis: bytes in, bytes out, in virtual time. Commands and replies wait in queues, so that a test
// decides what happens in which order; what a client left behind in a connection that it closed can run later.
class fake_server {
 public:
  using id = std::uint64_t;
  using command = std::vector<std::string>;

  explicit fake_server(instant const& now, int first_port = 40'000);

  // --- connections ---
  id accept();
  // Bytes of a client; answers how many commands were complete.
  std::size_t arrive(id which, std::string_view bytes);
  // Runs the oldest command of this connection. False: there is none, or nobody reads it.
  bool execute(id which);
  std::optional<std::string> take_reply(id which);
  bool alive(id which) const;  // known, and not killed
  std::size_t waiting(id which) const;
  // The client closed its side. What it had sent stays and may run; `lost`: it never arrived.
  void leave(id which, bool lost);
  // Runs what was left behind in closed connections and not killed. Answers how much that was.
  std::size_t run_left_behind();

  // --- what befalls the server ---
  void refuse(std::string start, std::string text, int times = 1);  // commands that begin so; -1: always
  void accept_all() { refusals_.clear(); }
  void flush_scripts() { loaded_.clear(); }
  void restart(bool with_data);  // all connections end
  void teach(detail::script const& text, std::string name, script_body body);
  std::string password;
  std::string user = "default";
  bool replica = false;
  std::string run_id;           // of the process; a restart changes it
  bool on_unix_socket = false;  // connections have no address of their own
  bool publish_refused = false;
  std::string noise;         // sent to whoever connects
  std::string lane_address;  // CLIENT LIST ID shows this instead; of a virtual address

  // --- other clients ---
  bool stranger_takes(std::string_view key, std::string_view field, std::int64_t lease);
  bool stranger_releases(std::string_view key, std::string_view field);
  bool stranger_forces(std::string_view key);  // as force_unlock of another client
  bool publish(std::string_view channel, std::string_view payload);

  // --- to be looked at ---
  fake_store store;
  std::vector<std::string> log;  // what ran, scripts by name: `EVALSHA acquire k f 1 30000`
  std::size_t ran(std::string_view start) const;
  std::size_t subscribers(std::string_view channel) const;
  std::size_t subscriptions() const;

  // Told of every reply that waits to be delivered.
  std::function<void(id)> on_reply = [](id) {};
  // Told of every connection that ends from this side.
  std::function<void(id)> on_end = [](id) {};

 private:
  struct connection {
    std::string address;
    bool killed = false;
    bool left = false;
    bool trusted = false;
    detail::reply_reader reader;
    std::deque<command> commands;
    std::deque<std::string> replies;
    std::set<std::string, std::less<>> channels;
  };
  struct refusal {
    std::string start, text;
    int times;
  };

  void answer(id which, reply const& said);
  std::string shown(command const& words) const;
  reply run(id which, command const& words);
  reply run_client(id which, command const& words);
  reply run_script(command const& words);
  reply run_query(command const& words);
  void end(id which);

  std::map<id, connection> connections_;
  id next_id_ = 1;
  int next_port_;
  std::vector<refusal> refusals_;
  std::map<std::string, script_body, std::less<>> bodies_;
  std::map<std::string, std::string, std::less<>> names_;
  std::set<std::string, std::less<>> loaded_;
};

}  // namespace latchkey::test
