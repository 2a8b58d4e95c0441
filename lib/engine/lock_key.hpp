#pragma once

#include <engine/core.hpp>
#include <wire/kind.hpp>

#include <boost/asio/system_executor.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

namespace latchkey::detail {

// What a handle refers to, and what can be done with it: one name on a server, or a lock that consists of others.
// Shared by all copies of the handle, by its leases and by calls under way.
struct lock_key {
  std::shared_ptr<core> const engine;
  std::string const name;
  kind_ptr const which;  // null: it consists of others
  unsigned char const mode;

  virtual ~lock_key() = default;

  // --- calls ---

  virtual void start(call& call) const = 0;
  // Returns when it is completed. A stop cancels it.
  virtual void run(blocking_call& call, std::stop_token const& stop = {}) const = 0;
  virtual void cancel(call& call) const = 0;
  // Ends it if its deadline has passed; answers when to ask again.
  virtual instant expire(call& call) const = 0;
  // Nobody waits for this release.
  virtual void drop(std::uint64_t owner, hold_id hold) const = 0;
  // The hold ends with the lease that it has.
  virtual void renew_no_longer(std::uint64_t owner, hold_id hold) const = 0;

  // --- questions that need no server ---

  // Would a wait of somebody else for this lock end only with a release by this owner?
  virtual bool keeps_out(std::uint64_t owner) const = 0;
  // Why it knows no such call; empty if it does.
  virtual std::string_view refuses(operation::type what, query question) const = 0;
  // A hold is trusted for so much less than its lease.
  virtual nanoseconds drift(milliseconds lease) const = 0;
  // Is this process a child of the one that made a client of it?
  virtual bool forked() const = 0;
  // Would a blocking call on this thread wait for itself?
  virtual bool inside() const = 0;
  // When a call without a wait of its own ends at the latest.
  virtual instant budget_end(instant start) const = 0;
  // What a hold that the watchdog renews lasts without renewal.
  virtual milliseconds watchdog_time() const = 0;
  // Of a semaphore: those that it has if nobody has set any; null: leaves that alone.
  virtual std::shared_ptr<std::string const> permits() const { return nullptr; }

  bool same_as(lock_key const& other) const {
    if (this == &other) return true;
    if (!which || !other.which || !which->same_as(*other.which)) return false;
    return engine == other.engine && name == other.name && mode == other.mode;
  }

  // The same for what same_as calls the same.
  std::size_t hash() const noexcept {
    if (!which) return std::hash<lock_key const*>()(this);
    std::size_t const parts[] = {std::hash<core const*>()(engine.get()),
                                 std::hash<std::string_view>()(which->rules().name), mode};
    std::size_t made = std::hash<std::string>()(name);
    for (std::size_t const part : parts) made = made * 31 + part;
    return made;
  }

 protected:
  lock_key(std::shared_ptr<core> client, std::string called, kind_ptr sort, unsigned char in_mode)
      : engine(std::move(client)), name(std::move(called)), which(std::move(sort)), mode(in_mode) {}
};

// Where handlers run that have no executor of their own.
inline asio::any_io_executor executor_of(lock_key const& key) {
  return key.engine->forked() ? asio::any_io_executor(asio::system_executor())
                              : key.engine->threads().handler_executor();
}

}  // namespace latchkey::detail
