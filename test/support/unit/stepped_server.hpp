#pragma once

#include <base/instant.hpp>
#include <server_model/server.hpp>
#include <wire/kind.hpp>

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::test {

using detail::instant;
using detail::milliseconds;
using detail::never;
using detail::reply;

// What histories and logs call the scripts of a kind: `prefix` and the request. Servers know such scripts from the
// beginning.
void name_scripts(detail::kind const& of, std::string const& prefix);

struct named_script {
  std::string name;
  detail::script const* script;
};

// The modelled server in the time of a world. Commands and replies wait in queues, so that a test decides what happens
// in which order; what a client left behind in a connection that it closed can run later.
class stepped_server final : public model::server_user {
 public:
  using id = model::server::handle;
  using words = std::vector<std::string>;

  explicit stepped_server(instant const& now) : redis(interpreter(), *this), now_(now) {}

  // --- connections ---
  id accept();
  // Bytes of a client; answers how many commands were complete.
  std::size_t arrive(id which, std::string_view bytes);
  // Runs the oldest command of this connection. False: there is none, or nobody reads it.
  bool execute(id which);
  std::optional<std::string> take_reply(id which);
  bool alive(id which) const { return redis.knows(which); }
  std::size_t connected() const { return connections_.size(); }
  // The client closed its side. What it had sent stays and may run; `lost`: it never arrived.
  void leave(id which, bool lost);
  // Runs what was left behind in closed connections and not killed. Answers how much that was.
  std::size_t run_left_behind();

  // --- what befalls the server ---
  void refuse(std::string start, std::string text, int times = 1);  // commands that begin so; -1: always
  void accept_all() { refusals_.clear(); }
  void flush_scripts();
  void restart(bool with_data);  // all connections end
  void hang_up();                // all that clients still have; what they left behind stays
  // This one answers so, whatever it is asked; empty: as ever.
  void answer_with(detail::script const& one, std::string_view lua);
  // What a node of a cluster says instead of running this; empty: it runs it. `asking`: ASKING stood before it.
  std::function<std::string(words const& command, bool asking)> elsewhere;
  std::string noise;                        // sent to whoever connects
  std::chrono::milliseconds clock_ahead{};  // of the world's time

  // --- other clients ---
  // What nobody's connection would be answered.
  reply ask(words const& command);
  bool stranger_takes(std::string const& key, std::string const& field, std::int64_t lease);
  bool stranger_releases(std::string const& key, std::string const& field);
  bool stranger_forces(std::string const& key);  // as force_unlock of another client
  void publish(std::string const& channel, std::string const& payload) { ask({"PUBLISH", channel, payload}); }

  // --- data: who holds a key, in the field of a hash or as its value ---
  model::keyspace::value const* find(std::string const& key);
  bool exists(std::string const& key) { return find(key) != nullptr; }
  bool has(std::string const& key, std::string const& field) { return count(key, field) != 0; }
  std::int64_t count(std::string const& key, std::string const& field);
  std::int64_t number(std::string const& key);                                     // 0: none
  std::int64_t ttl(std::string const& key) { return ask({"PTTL", key}).integer; }  // milliseconds; -1 none, -2 no key
  void set(std::string const& key, std::string const& field, std::int64_t count) {
    ask({"HSET", key, field, std::to_string(count)});
  }
  void set(std::string const& key, std::int64_t number) { ask({"SET", key, std::to_string(number)}); }
  void expire(std::string const& key, std::int64_t lease) { ask({"PEXPIRE", key, std::to_string(lease)}); }
  bool remove(std::string const& key) { return ask({"DEL", key}).integer == 1; }
  std::vector<std::string> list(std::string const& key);
  // All fields of all hashes and the values of strings, as `key/field=count` and `key/value`.
  std::set<std::string> all();

  // --- to be looked at ---
  std::vector<std::string> log;  // what ran, scripts by name: `EVALSHA acquire k f 1 30000`
  std::size_t ran(std::string_view start) const;
  std::size_t subscriptions() const;
  instant last_instant(std::string const& key);  // in which it is there
  model::server redis;

  // Told of every reply that waits to be delivered.
  std::function<void(id)> on_reply = [](id) {};
  // Told of every connection that ends from this side.
  std::function<void(id)> on_end = [](id) {};

 private:
  struct connection {
    bool left = false;
    bool asking = false;
    detail::reply_reader reader;
    std::deque<words> commands;
    std::deque<std::string> replies;
  };
  struct refusal {
    std::string start, text;
    int times;
  };

  static model::lua_scripts& interpreter();
  void load_scripts_of(words const& command);
  void set_clock();
  void answered(id which, std::string&& bytes) override;
  void dropped(id which) override;
  void hung_up(id which) override { dropped(which); }
  void ran(id, model::words_view, reply const&) override {}
  void published(std::string_view channel) override { log.push_back("(publish) " + std::string(channel)); }

  instant const& now_;
  std::map<id, connection> connections_;
  std::vector<refusal> refusals_;
  bool knows_scripts_ = true;  // it has run every script before
  std::set<named_script const*> loaded_;
};

}  // namespace latchkey::test
