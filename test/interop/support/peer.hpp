#pragma once

#include <interop/latchkey_driver/call.hpp>
#include <support/patience.hpp>
#include <support/raw_redis.hpp>

#include <sys/types.h>

#include <concepts>
#include <deque>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

namespace latchkey::test {

// What a peer answered to a call, and when the call returned, on the clock that all processes of the machine share.
struct answer {
  bool ok = false;
  std::string value{};
  clock::time_point at{};

  bool operator==(std::string_view text) const { return ok && value == text; }
};
std::string to_string(answer const& what);
inline std::ostream& operator<<(std::ostream& to, answer const& what) { return to << to_string(what); }

// A process that does with one library what it is told: the driver of Redisson or the driver of latchkey. Both read
// the same lines, so that a test is written once and runs in both directions. See Driver.java for the lines.
class peer {
 public:
  // Comes back when the process is connected to the servers.
  peer(std::string library, std::vector<std::string> const& command);
  peer(peer const&) = delete;
  peer& operator=(peer const&) = delete;
  ~peer();

  // "Redisson" or "latchkey", or one of those that share the plain lock.
  std::string const& library() const { return library_; }
  // The UUID of each of its clients; of the others their version.
  std::vector<std::string> const& ids() const { return ids_; }
  std::string const& id() const { return ids_.front(); }

  // Begins a call by this worker, which is a thread of the process. The future fails if the process ends.
  template <class... Arguments>
  std::future<answer> start(std::string const& worker, std::string const& operation, std::string const& kind,
                            std::string const& names, Arguments const&... arguments) {
    std::vector<std::string> words{worker, operation, kind, names};
    (words.push_back(word(arguments)), ...);
    return send(words);
  }

  // The same, and waits for the answer; throws if none comes in time.
  template <class... Arguments>
  answer call(std::string const& worker, std::string const& operation, std::string const& kind,
              std::string const& names, Arguments const&... arguments) {
    return value_in(start(worker, operation, kind, names, arguments...), operation);
  }
  static answer value_in(std::future<answer>&& future, std::string const& what,
                         std::chrono::milliseconds limit = 2 * patience);

  // The field under which a worker's holds stand.
  std::string field(std::string const& worker);

  // SIGKILL.
  void kill();

 private:
  static std::string word(std::string_view text) { return std::string(text); }
  static std::string word(std::integral auto number) { return std::to_string(number); }
  static std::string word(std::chrono::milliseconds time) { return std::to_string(time.count()); }

  void launch(std::vector<std::string> const& command);
  void await_ready();
  std::future<answer> send(std::vector<std::string> const& words);
  void listen();
  void heard(std::string const& line);

  std::string library_;
  std::vector<std::string> ids_;
  descriptor input_;
  descriptor output_;
  pid_t pid_ = -1;
  std::mutex mutex_;
  std::map<std::string, std::promise<answer>> waiting_;
  std::promise<std::string> ready_;
  long long last_number_ = 0;
  std::thread listener_;
};

// The names of a call as one word.
std::string joined(std::vector<std::string> const& names);

// The Redisson that pom.xml pins, or the one that LATCHKEY_INTEROP_REDISSON names, one of other-versions. A wait
// timeout of 0 is the library's own: how long a silent waiter stands in the queue of a fair lock.
std::unique_ptr<peer> redisson_peer(std::chrono::milliseconds watchdog_timeout, std::vector<std::string> const& uris,
                                    std::chrono::milliseconds fair_lock_wait_timeout = 0ms);
std::string other_redisson();
// build-driver has been run.
bool redisson_is_built();
std::unique_ptr<peer> latchkey_peer(std::chrono::milliseconds watchdog_timeout, std::vector<std::string> const& uris,
                                    std::chrono::milliseconds fair_lock_wait_timeout = 0ms);

// A driver in peers/, which build-peers has built: "redis-py", "redsync" or "redlock".
std::unique_ptr<peer> plain_peer(std::string const& library, std::string const& uri);

}  // namespace latchkey::test
