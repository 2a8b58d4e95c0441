#include <support/raw_redis.hpp>
#include <torture/board.hpp>
#include <torture/history.hpp>
#include <torture/pauses.hpp>
#include <torture/pauses_guards.hpp>
#include <torture/slot.hpp>

#include <chrono>
#include <optional>
#include <thread>

namespace latchkey::torture {

namespace {

// The store that the lock guards is a server of its own, which nobody disturbs. It refuses who comes with an older
// token than one that it has seen, and sees one with every read: if it looked at tokens of writers only, an older
// holder could write between the read and the write of the next one, be thanked for it, and be overwritten.
constexpr char const* fenced_read = R"(
if tonumber(redis.call('get', KEYS[2]) or '0') > tonumber(ARGV[1]) then return false end
redis.call('set', KEYS[2], ARGV[1])
return redis.call('get', KEYS[1]) or '')";
constexpr char const* fenced_write = R"(
if tonumber(redis.call('get', KEYS[2]) or '0') > tonumber(ARGV[2]) then return 0 end
redis.call('set', KEYS[2], ARGV[2])
redis.call('set', KEYS[1], ARGV[1])
return 1)";

class updater {
 public:
  updater(options const& run, board& shared, client& own, guard how, int set)
      : run_(run),
        shared_(shared),
        store_(test::endpoint{run.servers.at(1), 0}),
        how_(how),
        set_(set_name(how, set)),
        lock_(how == guard::token ? own.get_fenced_lock(set_) : own.get_lock(set_)),
        dice_(simulation::mix(run.seed, static_cast<std::uint64_t>(run.index), static_cast<std::uint64_t>(how), set)) {}

  void run() {
    while (shared_.now_is == board::work) {
      try {
        update();
      } catch (lock_error const&) {
        std::this_thread::sleep_for(milliseconds(50));
      }
    }
  }

 private:
  void update() {
    acquire_options how;
    how.wait = milliseconds(3'000);
    auto const held = lock_.acquire(how);
    if (!held) return;
    auto const token = held.fencing_token().value_or(0);
    auto const set = read(token);
    if (!set) return;
    std::this_thread::sleep_for(milliseconds(dice_.between(0, 2'000)));
    auto const element = std::to_string(run_.index) + "." + std::to_string(++elements_);
    if (how_ == guard::lost && (held.lost().stop_requested() || !held.held())) return;
    if (write(*set + element + " ", token)) acknowledge(element);
  }

  // Empty: refused.
  std::optional<std::string> read(std::uint64_t token) {
    if (how_ != guard::token) return store_.text("GET", set_);
    auto const answer = store_.ok("EVAL", fenced_read, 2, set_, set_ + ":token", token);
    if (answer.kind == detail::reply::type::nil) return std::nullopt;
    return answer.text;
  }

  bool write(std::string const& set, std::uint64_t token) {
    if (how_ == guard::token) return store_.integer("EVAL", fenced_write, 2, set_, set_ + ":token", set, token) == 1;
    store_.ok("SET", set_, set);
    return true;
  }

  // What this process may believe to be done.
  void acknowledge(std::string const& element) {
    store_.integer("RPUSH", set_ + ":acknowledged", element);
    ++shared_.sections[static_cast<std::size_t>(run_.index)];
  }

  options const& run_;
  board& shared_;
  test::raw_redis store_;
  guard const how_;
  std::string const set_;
  distributed_lock const lock_;
  simulation::dice dice_;
  int elements_ = 0;
};

}  // namespace

int run_pauses_worker(options const& run) {
  auto& shared = map_board(board_file(run.folder));
  config settings;
  settings.lock_watchdog_timeout = run.lease;
  settings.timeout = run.lease / 4;
  client own(run.servers.at(0), settings);
  std::vector<std::jthread> threads;
  for (auto const how : {guard::bare, guard::lost, guard::token})
    for (int set = 0; set < sets; ++set)
      threads.emplace_back([&, how, set] { updater(run, shared, own, how, set).run(); });
  return 0;
}

}  // namespace latchkey::torture
