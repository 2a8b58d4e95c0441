#pragma once

#include <machine/client_machine.hpp>
#include <simulation/scale.hpp>
#include <support/unit/stepped_server.hpp>
#include <support/unit/task.hpp>

#include <deque>
#include <memory>
#include <queue>
#include <string_view>
#include <unordered_map>

namespace latchkey::scale {

using detail::instant;
using detail::milliseconds;
using test::task;

// One run. Bodies: scale.cpp (the whole, callers), scale_clients.cpp, scale_servers.cpp.
class scale_run {
 public:
  explicit scale_run(wishes const& what);
  figures play();

 private:
  using words = test::stepped_server::words;

  // A connection, and what is on its way.
  struct wire {
    std::uint32_t client = 0, serial = 0, site = 0;
    test::stepped_server::id at = 0;
    bool scout = false;
    bool open = true;    // the client has not closed it
    bool ended = false;  // the server has
    instant last_down{};
    std::deque<std::string> up{};
  };

  // A server. It runs one command after the other, in the order in which they came.
  struct site {
    explicit site(instant const& now) : server(now) {}

    struct waiting {
      std::uint32_t wire;
      instant since;
      bool end;  // of the connection
    };
    test::stepped_server server;
    std::size_t shard = 0;
    std::uint64_t epoch = 0;
    bool dead = false;
    bool busy = false;
    std::deque<waiting> queue;
    std::unordered_map<test::stepped_server::id, std::uint32_t> wires;
    std::vector<std::uint32_t> spoken_to;  // by the command that is under way
    load worked;
  };

  struct client {
    client(config const& settings, detail::client_machine::identity who) : machine(settings, std::move(who)) {}

    detail::client_machine machine;
    detail::actions out;
    bool turn_posted = false;
    instant timer_at = detail::never;
    std::unordered_map<std::uint32_t, std::uint32_t> wires;  // by serial
  };

  // Takes its lock again and again, or once for the whole run.
  struct caller {
    std::uint32_t client = 0;
    std::size_t lock = 0;
    bool keeps = false;
    std::unique_ptr<task> asks{}, gives{};
  };

  struct lock {
    std::string name;
    std::size_t shard = 0;
    task const* holder = nullptr;
    int waiting = 0;
    instant freed{};
    bool held_then = false, wanted_then = false;  // when the master died, and not heard of since
    bool forgotten = false;
  };

  struct event {
    enum class type : unsigned char { turn, timer, open, reached, closed, served, heard, ended, acquire, release };
    instant at;
    std::uint64_t order;
    type what;
    std::uint32_t number;  // of a client, wire, site or caller

    friend bool operator>(event const& a, event const& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; }
  };

  void post(event::type what, instant at, std::size_t number);
  void act(event const& what);
  void play_until(nanoseconds since_begin);
  nanoseconds elapsed() const { return now_ - begin_; }
  std::uint64_t drawn(std::uint64_t a, std::uint64_t b = 0);

  // --- callers ---
  std::unique_ptr<task> made(std::uint32_t number, detail::operation::type what);
  void acquire(std::uint32_t number);
  void release(std::uint32_t number);
  void completed(task& done);
  void granted(std::uint32_t number);

  // --- clients ---
  void perform(std::uint32_t index);
  void take_turn(std::uint32_t index);
  void on_timer(std::uint32_t index, instant at);
  void open(std::uint32_t number);
  void close(std::uint32_t index, std::uint32_t serial);
  void say(std::uint32_t index, std::uint32_t serial, std::string&& bytes);
  void heard(std::uint32_t number);
  void ended(std::uint32_t number);
  nanoseconds way(std::uint32_t index) const;

  // --- servers ---
  void add_site(std::size_t shard);
  std::size_t leader_of(std::size_t shard) const { return shard == failed && elected_ ? shards_ : shard; }
  void reached(std::uint32_t number);
  void serve(std::uint32_t index);
  nanoseconds tell_nodes(std::uint32_t number);
  nanoseconds run_command(site& at, wire& on, nanoseconds& late);
  void deliver(std::uint32_t number, nanoseconds after);
  std::string before(std::size_t index, words const& command);
  void count(std::size_t index, std::string_view sort, nanoseconds cost);
  void look_at(std::string_view name, bool tries);
  void die();
  void elect();
  void write_nodes();
  void look_around();

  static constexpr std::size_t failed = 0;  // the shard whose master dies

  wishes const what_;
  std::size_t const shards_;
  instant const begin_{std::chrono::hours(1)};
  instant now_ = begin_;
  bool died_ = false, elected_ = false;
  std::string nodes_;
  figures found_;
  std::uint64_t order_ = 0;
  std::priority_queue<event, std::vector<event>, std::greater<>> events_;
  std::vector<lock> locks_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
  std::vector<caller> callers_;
  std::deque<wire> wires_;
  std::vector<std::unique_ptr<site>> sites_;      // one for each shard, and the replica
  std::vector<std::unique_ptr<client>> clients_;  // go before their calls do
};

}  // namespace latchkey::scale
