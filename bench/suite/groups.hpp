#pragma once

#include <suite/stage.hpp>

#include <span>
#include <string_view>

namespace bench {

// Rows that are measured together; each group is one file.
struct group {
  std::string_view name;
  std::string_view meaning;
  void (*run)(stage&);
};

std::span<group const> all_groups();

void run_pair(stage& on);
void run_scope(stage& on);
void run_coroutine(stage& on);
void run_crowd(stage& on);
void run_one_lock(stage& on);
void run_processes(stage& on);
void run_holds(stage& on);
void run_waiter(stage& on);
void run_others(stage& on);
void run_kinds(stage& on);
void run_allocations(stage& on);
void run_first_lock(stage& on);
void run_settings(stage& on);

}  // namespace bench
