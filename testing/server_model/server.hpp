#pragma once

#include <codec/reply.hpp>
#include <server_model/lua_scripts.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace latchkey::model {

// What the server tells the network.
class server_user {
 public:
  virtual void answered(std::uint32_t connection, std::string&& bytes) = 0;
  virtual void dropped(std::uint32_t connection) = 0;  // the server has ended it
  virtual void hung_up(std::uint32_t connection) = 0;  // the same, and what it had said before arrives
  // A command is about to run, or has run. `said` is null before.
  virtual void ran(std::uint32_t connection, words_view words, reply const& said) = 0;
  virtual void published(std::string_view) {}

 protected:
  ~server_user() = default;
};

// A modelled Redis: bytes in, bytes out. The scripts that clients send are really run.
class server final : public publisher {
 public:
  using handle = std::uint32_t;  // never reused, unlike the ids that clients see

  // Handles begin with `first`.
  server(lua_scripts& scripts, server_user& network, handle first = 1)
      : scripts_(scripts), user_(network), next_handle_(first) {}

  // --- the network ---
  handle accept();
  void arrive(handle which, std::string_view bytes);  // runs what is complete
  // Runs and answers one command. False: it has ended the connection.
  bool serve(handle which, words_view words);
  void end_of_file(handle which);
  void turn_away(handle which) { hang_up(which); }
  bool knows(handle which) const { return connections_.contains(which); }
  // What a command of nobody's connection would be answered.
  reply execute(words_view words);

  // --- what befalls it ---
  void restart(bool with_data);
  void flush_scripts() { loaded_.clear(); }
  // As SCRIPT LOAD. Throws what is wrong with it.
  std::string const& load(std::string_view text);
  // From now on it runs another text in the place of this one.
  void replace(std::string const& sha, std::string_view text);
  std::string password;  // empty: nobody is asked for it
  std::string user = "default";
  std::string version{};        // empty: it does not say
  std::string run_id = "1";     // of the process; empty: it does not say
  bool on_unix_socket = false;  // connections have no address of their own
  int next_port = 40'000;
  bool refuses_publish = false;
  bool loading = false;
  bool read_only = false;
  bool full = false;
  bool busy = false;  // a script runs for long: everything is answered BUSY
  bool refuses_kill = false;
  std::size_t replicas = 0;         // that follow it
  std::size_t synced_replicas = 0;  // of them, whatever they are asked
  bool mute = false;                // messages reach nobody
  command_names denied;             // to every user
  // So many times this command of a client is answered so, and not run.
  void fail(std::string_view command, std::string_view words, int times);
  // What lasts: it says one word to whatever it is asked, or hangs up.
  enum class sickness : unsigned char {
    none,
    says_a_word,
    says_it_later,    // the handshake is answered as ever
    turns_away,       // whoever connects
    hangs_up,         // behind the handshake
    drops_listeners,  // whoever subscribes
  };
  sickness sick = sickness::none;
  std::string word;
  std::uint64_t lost_messages = 0;
  int lose_messages = 0;  // so many publications reach nobody
  int double_messages = 0;

  // --- to be looked at ---
  // Of tables or of connections, or a subcommand of those: `client|kill`.
  static bool is_known(std::string_view command);
  // As CLIENT LIST.
  std::string clients() const;
  keyspace data;
  std::size_t subscriptions(std::function<bool(handle)> const& counts) const;
  std::uint64_t commands = 0;

  reply publish(std::string_view channel, std::string_view payload, bool sharded) override;
  // Of channels of the slots that it has no more nobody hears anything from now on, and is told so. Redis:
  // removeChannelsInSlot.
  void end_channels(std::function<bool(std::string_view)> const& gone);

 private:
  struct connection {
    std::uint64_t id;
    std::string address;
    std::string name;
    bool trusted;
    detail::reply_reader reader;
    std::set<std::string, std::less<>> channels;
    bool monitors = false;
    std::optional<std::vector<std::vector<std::string>>> queued{};  // between MULTI and EXEC
    std::set<std::string, std::less<>> sharded{};                   // channels of slots
  };

  bool hangs_up_on(words_view words) const;
  bool hang_up(handle which);  // answers false
  struct failure {
    std::string command, words;
    int times;
  };

  static bool greets(words_view words);
  std::optional<std::string> failure_of(words_view words);
  reply run(handle which, words_view words);
  reply run_here(handle which, words_view words);
  reply run_client(handle which, words_view words);
  reply kill(words_view words);
  reply run_stored(words_view words);
  reply run_pubsub(words_view words) const;
  reply info(words_view words) const;
  reply collect(handle which, words_view words);
  reply run_keys(words_view words);
  void show(handle which, words_view words);
  reply run_script(words_view words);
  void subscribe(handle which, words_view words, bool in, bool sharded);
  void answer(handle which, reply const& said);

  lua_scripts& scripts_;
  server_user& user_;
  std::map<handle, connection> connections_;
  // Who has begun to listen to a channel of a server, or of a slot, and may have ended: whoever publishes tidies up.
  std::array<std::map<std::string, std::set<handle>, std::less<>>, 2> listeners_;
  handle next_handle_;
  std::uint64_t next_id_ = 1;
  int starts_ = 1;
  std::unordered_set<std::string> loaded_;
  std::unordered_map<std::string, std::string> replaced_;
  std::vector<failure> failures_;
  std::map<std::string, std::uint64_t> calls_;
  std::size_t monitors_ = 0;  // how many there have been
};

char const* name_of(server::sickness what);

}  // namespace latchkey::model
