#pragma once

#include <chrono>
#include <run/messages.hpp>
#include <run/signals.hpp>
#include <run/terminal.hpp>
#include <string>
#include <vector>

namespace latchkey::tool {

enum class on_loss { term, kill, ignore };
enum class orphans { wait, kill, ignore };

// What the keeper is to do: it cannot be told later, since it is forked before there are threads.
struct keeper_orders {
  std::string path;
  std::vector<std::string> words;
  std::chrono::milliseconds grace;
  on_loss loss;
  tool::orphans left;
};

// The messages. From the front: `env NAME=VALUE`, `deadline T`, `go`, `signal N`, `lost`. From the keeper: `started
// PID`, `failed ERRNO`, `stopped N`, `orphan PID NAME`, `overdue`, and last `ended STATUS`, as waitpid says it.
//
// The keeper is the parent of the command, has no network, and ends everything below it at the deadline, and when the
// front is gone. It never returns.
[[noreturn]] void keep(message_end front, keeper_orders const& orders, signals const& as_found, terminal const& screen);

}  // namespace latchkey::tool
