#pragma once

#include <engine/core.hpp>
#include <wire/kind.hpp>

#include <boost/asio/system_executor.hpp>

#include <memory>
#include <string>

namespace latchkey::detail {

// What a handle refers to. Shared by all copies of the handle, by its leases and by calls under way.
struct lock_key {
  std::shared_ptr<core> engine;
  std::string name;
  kind const* which;
  unsigned char mode = 0;
};

// Where handlers run that have no executor of their own.
inline asio::any_io_executor executor_of(lock_key const& key) {
  return key.engine->forked() ? asio::any_io_executor(asio::system_executor()) : key.engine->handler_executor();
}

}  // namespace latchkey::detail
