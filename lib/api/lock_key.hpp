#pragma once

#include <engine/core.hpp>
#include <wire/kind.hpp>

#include <boost/asio/system_executor.hpp>

#include <memory>
#include <string>

namespace latchkey::detail {

class joint_lock;

// What a handle refers to: a name on a server, or a lock of several members. Shared by all copies of the handle, by
// its leases and by calls under way.
struct lock_key {
  std::shared_ptr<core> engine;
  std::string name;
  kind const* which = nullptr;  // null: it has members
  unsigned char mode = 0;
  std::shared_ptr<joint_lock> joint{};  // null: it is one name
};

// Where handlers run that have no executor of their own.
inline asio::any_io_executor executor_of(lock_key const& key) {
  return key.engine->forked() ? asio::any_io_executor(asio::system_executor()) : key.engine->handler_executor();
}

}  // namespace latchkey::detail
