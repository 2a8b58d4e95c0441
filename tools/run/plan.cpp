#include <algorithm>
#include <base/environment.hpp>
#include <base/exit_code.hpp>
#include <base/say.hpp>
#include <hand/tokens.hpp>
#include <run/command.hpp>
#include <run/outcome.hpp>
#include <run/plan.hpp>
#include <sstream>

namespace latchkey::tool {
namespace {

using std::chrono::seconds;

// The engine accepts no shorter one.
constexpr milliseconds shortest_lease{10};

on_loss loss_of(std::string const& word) {
  return word == "kill" ? on_loss::kill : word == "ignore" ? on_loss::ignore : on_loss::term;
}

orphans orphans_of(std::string const& word) {
  return word == "kill" ? orphans::kill : word == "ignore" ? orphans::ignore : orphans::wait;
}

std::vector<std::string> words_of(command_line const& line) {
  auto words = std::vector<std::string>(line.operands().begin() + 1, line.operands().end());
  if (auto const text = line.text("shell")) {
    if (!words.empty()) throw failure(wrong_usage, "a command and --shell were given; see latchkey run --help");
    return {"/bin/sh", "-c", *text};
  }
  if (words.empty()) throw failure(wrong_usage, "a command is missing; see latchkey run --help");
  return words;
}

void check_kind(run_plan const& plan) {
  bool const semaphore = plan.kind == "semaphore";
  if (plan.permits && !semaphore) throw failure(wrong_usage, "--permits is for --kind semaphore");
  if (plan.also.empty()) return;
  // A joined lock has no token, and permits cannot be joined.
  if (semaphore || plan.kind == "fenced") throw failure(wrong_usage, "--also cannot be used with --kind " + plan.kind);
  auto names = plan.also;
  names.push_back(plan.name);
  std::sort(names.begin(), names.end());
  if (std::adjacent_find(names.begin(), names.end()) != names.end())
    throw failure(wrong_usage, "a lock is named twice");
}

// A lock that a caller of ours holds would be waited for while the caller waits for us.
void check_nesting(run_plan const& plan) {
  auto names = plan.also;
  names.push_back(plan.name);
  std::istringstream tokens(tokens_of_callers());
  for (std::string one; tokens >> one;) {
    auto const held = read_token(one);
    if (!held || held->kind == "semaphore") continue;
    for (auto const& name : names)
      if (std::find(held->names.begin(), held->names.end(), name) != held->names.end())
        throw failure(wrong_usage, quoted(name) + " is already held by the caller (LATCHKEY_TOKEN): it would deadlock");
  }
}

void read_times(run_plan& plan, command_line const& line) {
  constexpr milliseconds zero{0};
  if (line.has("no-wait") && line.has("wait")) throw failure(wrong_usage, "--wait and --no-wait were given");
  plan.wait = line.has("no-wait") ? zero : line.duration("wait", forever, zero);
  plan.lease = line.duration("lease", seconds(30), shortest_lease);
  if (plan.lease == forever) throw failure(wrong_usage, "--lease has an end: it is renewed as long as needed");
  plan.max_hold = line.duration("max-hold", forever, shortest_lease);
  auto const shorter = std::min<milliseconds>(seconds(5), std::min(plan.lease, plan.max_hold) / 4);
  plan.orders.grace = line.duration("grace", shorter, zero);
  if (plan.orders.grace > plan.lease / 2) throw failure(wrong_usage, "--grace is at most half of --lease");
}

// The name of the connections, by which `status` and CLIENT LIST know a holder: what it would be, and why it holds.
std::string name_with(std::string note) {
  if (note.size() > 200) throw failure(wrong_usage, "--note has at most 200 bytes");
  for (char& c : note)
    if (c <= ' ' || c > '~' || c == '{' || c == '}') c = '_';
  return "latchkey:{id}:{pid}@{host}:{program}(" + note + ')';
}

}  // namespace

std::string tokens_of_callers() {
  auto outer = variable_of("LATCHKEY_OUTER_TOKENS").value_or("");
  auto const inner = variable_of("LATCHKEY_TOKEN").value_or("");
  return outer.empty() || inner.empty() ? outer + inner : outer + ' ' + inner;
}

run_plan plan_of(command_line const& line) {
  run_plan plan{};
  plan.name = line.operands().front();
  if (plan.name.empty()) throw failure(wrong_usage, "the name of the lock is empty");
  plan.also = line.all("also");
  plan.kind = line.choice("kind", "lock");
  plan.permits = line.number("permits", 1, 1'000'000'000);
  plan.busy_code = line.number("busy-exit-code", 0, 255).value_or(still_busy);
  plan.lost_code = line.number("lost-exit-code", 0, 255).value_or(lock_lost);
  plan.result_file = line.text("result").value_or("");
  read_times(plan, line);
  plan.orders.loss = loss_of(line.choice("on-loss", "term"));
  plan.orders.left = orphans_of(line.choice("orphans", "wait"));
  plan.orders.words = words_of(line);
  check_kind(plan);
  check_nesting(plan);
  plan.server = connection_of(line);
  plan.server.settings.lock_watchdog_timeout = plan.lease;
  if (auto const note = line.text("note")) plan.server.settings.client_name = name_with(*note);
  if (!plan.result_file.empty()) static_cast<void>(file_of_result(plan.result_file));
  plan.orders.path = find_program(plan.orders.words.front());
  return plan;
}

}  // namespace latchkey::tool
