#pragma once

#include <latchkey/config.hpp>
#include <suite/results.hpp>
#include <support/redis_server.hpp>

#include <span>
#include <string>
#include <string_view>

namespace bench {

// What a group of rows has to work with: a server of its own on loopback TCP, and where its rows go.
class stage {
 public:
  stage(std::string group, int rounds, results& out);

  latchkey::test::redis_server const& server() const { return server_; }
  std::uint16_t port() const { return server_.where().port; }
  std::string uri() const { return server_.uri(); }
  // Of the longest sort of round; shorter ones may have more.
  int rounds() const { return rounds_; }

  void say(std::string const& text) const;
  void add(row one);
  void draw(std::string plot, std::string line, std::vector<std::pair<double, double>> points);

 private:
  std::string const group_;
  int const rounds_;
  results& out_;
  latchkey::test::redis_server const server_;
};

// A name that nobody has used.
std::string new_name(std::string_view group);

// Settings under which nothing happens but what is measured.
latchkey::config quiet_config();

// Rows that are measured together; each group is one file.
struct group {
  std::string_view name;
  std::string_view meaning;
  void (*run)(stage&);
};

std::span<group const> all_groups();

void run_pair(stage& on);
void run_tls(stage& on);
void run_scope(stage& on);
void run_coroutine(stage& on);
void run_crowd(stage& on);
void run_cluster(stage& on);
void run_failover(stage& on);
void run_one_lock(stage& on);
void run_turns(stage& on);
void run_processes(stage& on);
void run_holds(stage& on);
void run_waiter(stage& on);
void run_others(stage& on);
void run_kinds(stage& on);
void run_allocations(stage& on);
void run_first_lock(stage& on);
void run_network(stage& on);
void run_settings(stage& on);
void run_sizing(stage& on);

}  // namespace bench
