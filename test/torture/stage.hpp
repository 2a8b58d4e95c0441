#pragma once

#include <support/fault_proxy.hpp>
#include <support/redis_server.hpp>
#include <torture/history.hpp>
#include <torture/options.hpp>

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace latchkey::torture {

// The servers, the worker processes, and a proxy between every two of them. One thread alone uses it.
class stage {
 public:
  stage(options const& run, std::string folder);
  stage(stage const&) = delete;
  stage& operator=(stage const&) = delete;
  ~stage();

  // --- workers ---
  int workers() const { return static_cast<int>(seats_.size()); }
  bool lives(int index) const { return seats_[at(index)].pid > 0; }
  pid_t pid(int index) const { return seats_[at(index)].pid; }
  bool stopped(int index) const { return seats_[at(index)].stopped_since != 0; }
  void spawn(int index);
  void kill(int index);
  void stop(int index);
  void resume(int index);
  // Notices who has ended; the number of those who still run.
  int running();
  // How workers ended whom nobody killed: a line for each that was not as it should be.
  std::vector<std::string> const& accidents() const { return accidents_; }
  // Whoever still runs is late: says so in the history and kills him.
  void end_overdue();

  // --- servers ---
  int servers() const { return static_cast<int>(servers_.size()); }
  test::redis_server& server(int which) { return *servers_[at(which)]; }
  test::fault_proxy& proxy(int index, int which) { return *proxies_[at(index * servers() + which)]; }
  // It runs and would answer now.
  bool answers(int which) const;
  void freeze(int which);
  void thaw(int which);
  void sleep(int which, std::int64_t length);
  void crash(int which);
  void start(int which);

  history_writer& log() { return log_; }
  options const& run() const { return run_; }
  std::string const& folder() const { return folder_; }

 private:
  struct seat {
    pid_t pid = -1;
    int incarnation = 0;
    std::int64_t stopped_since = 0;
  };
  struct condition {
    bool down = false, frozen = false;
    std::int64_t since = 0, sleeps_until = 0;
    std::unique_ptr<test::raw_redis> sleeper{};
  };

  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  void note_end(int index, int status);
  void log_outage(int which);

  options const& run_;
  std::string folder_;
  history_writer log_;
  std::vector<std::unique_ptr<test::redis_server>> servers_;
  std::vector<condition> conditions_;
  std::vector<std::unique_ptr<test::fault_proxy>> proxies_;
  std::vector<seat> seats_;
  std::vector<std::string> accidents_;
};

}  // namespace latchkey::torture
