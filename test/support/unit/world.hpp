#pragma once

#include <latchkey/config.hpp>
#include <machine/client_machine.hpp>
#include <support/unit/stepped_server.hpp>
#include <support/unit/task.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace latchkey::test {

using detail::client_machine;
using detail::role;

// What becomes of the bytes that a connection still holds when it is lost.
enum class fate {
  gone,    // they never arrive
  ran,     // they run at once, unseen
  late,    // they run as late as the server can be made to run them
  silent,  // nobody notices: the server stops reading, and the bytes run late
};

// Nothing is done without the server: for tests of what is asked of it, and when. Those of turns have settings of
// theirs.
inline config seen_by_the_server() {
  config made;
  made.local_turns = false;
  return made;
}

// Thrown where a rule is broken; the text ends with what happened so far.
struct violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Bytes as one line of a history.
std::string shortened(std::string_view bytes);

// The UUID, so to speak, of a client of a world.
std::string client_id(std::size_t client);

// Clients without I/O, a server without sockets, and a time that only moves when nothing else is to be done.
// After every event it is checked that nobody holds a lock beside somebody else, and that the server remembers what
// its holders believe. Bodies: world.cpp (events), world_links.cpp (connections and
// their faults), world_sentinel.cpp, world_calls.cpp (callers), world_checks.cpp.
class world {
 public:
  // How clients know their server: by its address, by a sentinel that knows which it is, or by asking nodes of a
  // cluster.
  enum class known { by_address, by_sentinel, by_nodes };
  explicit world(config settings = seen_by_the_server(), std::size_t clients = 1, known how = known::by_address);
  ~world();
  world(world const&) = delete;
  world& operator=(world const&) = delete;

  // --- callers ---
  task& acquire(std::uint64_t owner, how const& options = {});
  task& once(std::uint64_t owner, how options = {});
  task& release(task& held, bool direct = false);
  task& unlock(std::uint64_t owner, how const& options = {});
  world& drop(task& held);
  task& extend(task& held, milliseconds lease, bool direct = false);
  task& force_unlock(how const& options = {});
  // A command of the kind's own, as an owner of its own.
  task& command(unsigned char which, how const& options);
  task& ask(detail::query what, std::uint64_t owner = 0, how const& options = {});
  task& connect(milliseconds wait, how const& options = {});
  world& cancel(task& one);
  // `closer`: whose holds without a lease are released.
  world& close(std::size_t client = 0, std::uint64_t closer = 0);
  // Something that needs no answer, to the first client.
  void tell(std::string_view what, std::function<void(client_machine&, instant, detail::actions&)> const& how);

  // --- events ---
  bool step();  // one event, without time; false: there is none
  // All events, without time. `begun` is what was called before them.
  template <class... Begun>
  decltype(auto) run(Begun&... begun) {
    for (int i = 0; step(); ++i)
      if (i > most_steps) fail("never comes to rest");
    return (begun, ...);
  }
  void pass(milliseconds length);  // time, with all that happens meanwhile
  bool wait_for_next();            // to the next time at which a client has something to do
  // Until all of them are done.
  template <class... Others>
  task& await(task& first, Others&... others) {
    for (task* const one : {&first, &others...}) {
      instant const limit = detail::after(now, milliseconds(180'000));
      until([&] { return one->done() || (faulty && now > limit); });
    }
    return first;
  }
  template <class Condition>
  void until(Condition const& met) {
    for (int i = 0; !met(); ++i) {
      if (i > most_steps) fail("waited in vain");
      if (!step() && !wait_for_next()) fail("nothing will ever happen");
    }
  }
  int steps() const { return steps_; }
  std::function<void(world&)> before_step;
  bool faulty = false;  // something is made to fail: scenarios then expect no certain result

  // --- faults ---
  world& lose(role as, fate what, std::size_t client = 0);
  world& deafen(role as, bool deaf = true, std::size_t client = 0);      // the server does not read this connection
  world& mute(role as, bool muted = true, std::size_t client = 0);       // answers do not arrive
  void inject(role as, std::string_view bytes, std::size_t client = 0);  // as if the server had said so
  void hear(std::uint32_t serial, std::string_view bytes, std::size_t client = 0);  // even of a connection that is over
  std::uint32_t serial(role as, std::size_t client = 0);
  bool connected(role as, std::size_t client = 0) const;
  std::string unreachable;            // not empty: no connection can be made, and why
  bool nobody_answers = false;        // connections are begun and never made
  std::string only_host;              // not empty: these two concern connections to this one alone
  int opened = 0;                     // connections begun so far
  bool lanes_resolve_anew = false;    // lanes go where the name leads now, not to the peer
  bool late_bytes = true;             // what was left behind runs before time passes
  int named_replicas = 2;             // by sentinels, of the master
  std::size_t sentinel_count = 1;     // clients begin with the first one
  bool nodes_announce_names = false;  // name0, name1, ... of hosts
  std::uint64_t any_order = 0;        // not zero: a seed; of several events that could be next any is
  bool borrower_stuck = false;        // whoever borrowed the lane does not look at its answer
  stepped_server& add_server();       // names resolve to it from now on
  // In a cluster: by these nodes, which are no masters.
  std::map<std::size_t, std::size_t> followed;
  void resolve_to(stepped_server& one) { resolved_ = &one; }

  milliseconds clock_behind{0};  // of the clients' machine, as against that of the servers

  // --- looking ---
  instant now{std::chrono::hours(1)};
  // In [0, below); replays with its seed.
  std::uint64_t random(std::uint64_t below);

  config const settings;
  stepped_server server;
  client_machine& machine(std::size_t client = 0) { return clients_[client]->machine; }
  stats snapshot(std::size_t client = 0) const;
  std::vector<std::unique_ptr<task>> const& tasks() const { return tasks_; }
  std::string field(std::uint64_t owner, std::size_t client = 0) const;
  std::vector<detail::note> notes;  // of all clients
  std::size_t noted(event_type what) const;
  bool watch_holds = true;  // checks after every event; off where data is taken away behind the clients' backs
  bool exclusive = true;    // off for kinds that several owners hold at once

  // --- checks ---
  [[noreturn]] void fail(std::string const& why) const;
  void expect(bool met, std::string const& what) const;  // no matter in a run with faults
  // Ends what is held, lets everything come to rest, and checks that nothing is left anywhere.
  void finish();
  void resolve();
  bool at_ease() const;             // nothing is in doubt, and no event waits
  void remember(std::string line);  // adds to the history
  bool keeps_history = true;
  int most_steps = 20'000;  // without time, or until something happens

 private:
  friend struct bundles;
  friend struct transfers;
  friend struct sentinels;
  friend struct nodes;
  friend struct scouts;

  struct answer {
    std::string bytes;
    std::uint64_t epoch = 0;
  };
  struct connection {
    role as;
    std::string host{};
    stepped_server* server = nullptr;
    stepped_server::id at = 0;
    bool deaf = false;
    bool muted = false;
    bool lendable = false;      // direct: callers may borrow it, and the engine does not look
    bool dead = false;          // nobody has noticed
    std::deque<answer> said{};  // by a sentinel or by a node that is asked for the others
    bool listens = false;       // to a sentinel
    bool outdated = false;      // begun after its client had heard of a later master
  };
  struct loan {
    task* of;
    instant end;
  };
  struct node {
    node(config const& given, client_machine::identity who) : machine(given, std::move(who)) {}
    client_machine machine;
    detail::actions out;
    bool turn_posted = false;
    std::map<std::uint32_t, connection> connections;
    std::map<std::uint32_t, loan> lent;  // by the number of the lane
    std::uint64_t heard = 0;             // the latest epoch that a sentinel has told
  };
  struct token {
    enum class type : unsigned char { turn, open, execute, deliver, ended, loan_over, said };
    type what;
    std::size_t client = 0;
    std::uint32_t serial = 0;
    role as = role::shared;
    bool to_peer = false;
    std::uint32_t leader = 0;  // open: whose peer
    std::string text{};        // open: the host
    stepped_server* server = nullptr;
    stepped_server::id at = 0;
  };

  task& made(std::uint64_t owner, how const& options, detail::operation::type what);
  void start(task& one);
  void borrow(node& me, std::uint32_t serial, task& one);
  void say(std::size_t client, std::uint32_t serial, std::string const& bytes);
  void perform(std::size_t client);
  void take_turn(std::size_t client);
  void open(token const& what);
  void deliver(token const& what);
  void lane_reply(std::size_t client, std::uint32_t serial, std::string const& bytes);
  void broken(std::size_t client, std::uint32_t serial);
  bool blocked(token const& what) const;
  std::deque<token>::iterator choose();
  void act(token const& what);
  void listen_to(stepped_server& one);
  connection const* find(stepped_server const* of, stepped_server::id at, std::size_t& client,
                         std::uint32_t& serial) const;
  connection* find(role as, std::size_t client, std::uint32_t* serial = nullptr);
  instant next_time() const;
  void on_time();
  void check_holds();
  void check_at_rest();
  bool at_rest() const;

  std::vector<std::unique_ptr<task>> tasks_;
  std::vector<task*> self_timed_;  // those that were at the beginning
  std::deque<std::unique_ptr<stepped_server>> others_;
  stepped_server* resolved_ = &server;
  known how_;
  static constexpr std::size_t nowhere = 1'000;
  struct slot {
    std::size_t owner = 0;
    std::size_t moves_to = nowhere;
  };
  struct slot_table {
    std::map<std::uint16_t, slot> slots;          // that are not where `most_at` says
    std::size_t most_at = 0;                      // the node that has all others
    std::map<std::size_t, std::uint64_t> epochs;  // of masters
    std::size_t owner_of(std::uint16_t slot) const {
      auto const found = slots.find(slot);
      return found == slots.end() ? most_at : found->second.owner;
    }
  };
  slot_table slots_;
  std::map<std::size_t, slot_table> late_nodes_;  // what those know that have not heard of all
  std::set<std::size_t> gone_;
  std::set<std::size_t> forgotten_;
  std::string generation_;                // of nodes, behind their ids
  std::map<std::string, int> questions_;  // by the host that was asked
  struct election {
    stepped_server* master = nullptr;
    std::uint64_t epoch = 0;
  };
  std::uint64_t epoch_ = 0;
  std::map<stepped_server const*, std::uint64_t> epochs_;  // of masters, when they were elected last
  std::map<std::size_t, election> late_sentinels_;         // what those know that have not heard of the last one
  std::vector<std::unique_ptr<node>> clients_;
  std::deque<token> events_;
  std::vector<std::string> history_;
  int steps_ = 0;
  int wakes_ = 0;
};

// What sentinels and nodes say of others, in the order in which they said it on each connection.
struct scouts {
  static void will_hear(world& in, std::size_t client, std::uint32_t serial, std::string bytes,
                        std::uint64_t epoch = 0);
  static void deliver(world& in, std::size_t client, std::uint32_t serial);
};

// The cluster of a world. The first server has all slots, those that were added have none: node0, node1, ...
struct nodes {
  // A slot goes there with all its keys, and nobody who listens at the old one hears of it any more.
  static void move(world& in, std::string_view name, std::size_t to);
  // The same, but for the keys: they go one by one. Ends with `move`.
  static void begin_move(world& in, std::string_view name, std::size_t to);
  // No node has the slot; then one has, which is empty.
  static void uncover(world& in, std::string_view name);
  static void cover(world& in, std::string_view name, std::size_t by);
  // All keys of the slot go there.
  static void move_keys(world& in, std::string_view name, std::size_t to);
  // All that this one has goes to one that had nothing, with the data that it has: its replica. Clients are told
  // nothing; the old one sends them to the new one, or is gone.
  static void take_over(world& in, std::size_t from, std::size_t to, bool gone);
  // It hears of nothing until it hears of one node or of all; but a slot that moves is known where it is and where it
  // goes. A master that is replaced meanwhile serves what it had.
  static void hold_back(world& in, std::size_t number);
  // A heartbeat: the slots of that node, and its epoch.
  static void hear(world& in, std::size_t number, std::size_t of);
  static void hear_all(world& in, std::size_t number);
  // It is no part of the cluster any more, and hears nobody.
  static void leave(world& in, std::size_t number);
  // No other node names it, though it may go on; then all do so again, and it is a master or none.
  static void forget(world& in, std::size_t number);
  static void remember(world& in, std::size_t number);
  // An operator gives the slot to it, which has no greater epoch for that, and no keys.
  static void add_slot(world& in, std::string_view name, std::size_t to);
  // The nodes are other ones at the same places, and empty. Each has the slots of the one before it, or as before.
  static void make_anew(world& in, bool shifted);
  static bool has_left(world const& in, std::string const& host);
  // How often anybody asked who has the slots.
  static int questions(world const& in) {
    int all = 0;
    for (auto const& [host, count] : in.questions_) all += count;
    return all;
  }
  static bool was_asked(world const& in, std::string const& host) { return in.questions_.contains(host); }
  static stepped_server& at(world& in, std::size_t number);
  // How many lanes of the first client callers have.
  static std::size_t lanes_lent(world const& in) { return in.clients_.front()->lent.size(); }
  static std::size_t owner_of(world const& in, std::uint16_t slot);

  // --- of the world ---
  static void join(world& in, stepped_server& one, std::size_t number);
  static void asked(world& in, std::size_t client, std::uint32_t serial, std::string const& bytes);

 private:
  static world::slot_table const& known_by(world const& in, std::size_t number);
  static void end_foreign_channels(world& in, std::size_t number);
  static std::uint64_t latest_epoch(world const& in);
};

// The sentinels of a world that is watched.
struct sentinels {
  // This one is the master from now on, with the data that it has; `announced`: those who listen are told.
  static void promote(world& in, stepped_server& one, bool announced = true);
  // The same, and one sentinel alone knows it.
  static void elect(world& in, stepped_server& one, std::size_t leader, bool announced);
  // What that other one knows, if it is news.
  static void hear(world& in, std::size_t number, std::size_t from, bool announced);
  static void tell_all(world& in) { in.late_sentinels_.clear(); }
  // The first server is node0, those that were added are node1, node2 ... Without a name: where names lead now.
  static stepped_server* named(world& in, std::string const& host);
  static void asked(world& in, std::size_t client, std::uint32_t serial, std::string const& bytes);
  // Whether the master of that name was replaced, and the client knows it.
  static bool outdated(world& in, std::size_t client, std::string const& host);

 private:
  static world::election elected(world const& in) { return {in.resolved_, in.epoch_}; }
  static world::election known_by(world const& in, std::size_t number);
  static void announce(world& in, std::size_t number);
};

}  // namespace latchkey::test
