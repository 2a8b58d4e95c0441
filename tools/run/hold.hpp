#pragma once

#include <latchkey/latchkey.hpp>

#include <functional>
#include <optional>
#include <run/messages.hpp>
#include <run/plan.hpp>
#include <string>
#include <variant>

namespace latchkey::tool {

// What `run` holds: a lease, which the library renews, or a permit, which is renewed here.
class hold {
 public:
  hold(latchkey::lease held, distributed_lock lock, std::string owner);
  hold(permit held, run_plan const& plan);

  bool held() const;
  // Until when the command may run.
  boot_time deadline() const;
  std::optional<std::uint64_t> fence() const;
  // As it stands on the server.
  std::string const& owner() const noexcept { return owner_; }

  // `f` runs on a thread of the client.
  void on_lost(std::function<void(error_code)> f);
  // Renews a permit that is due; without effect on locks.
  void renew();
  // From now on it ends at its deadline.
  void stop_renewal();
  // Asks the server whether it shows the hold. `done` runs on a thread of the client.
  void confirm(std::function<void(error_code, bool)> done);
  void release(std::function<void(error_code, release_result)> done);

 private:
  void extend(milliseconds length, std::function<void(error_code, bool)> done);
  // How long a lease may be that begins now.
  milliseconds room() const;

  std::variant<latchkey::lease, permit> held_;
  std::optional<distributed_lock> lock_;
  std::string owner_;
  milliseconds lease_{0};
  boot_time last_ = never;  // of a permit: the end that --max-hold puts
  boot_time renew_at_ = never;
};

using acquired = std::function<void(error_code, std::optional<hold>)>;

// Waits for at most `wait`; a hold that is empty: still busy. The slot ends it. `done` runs on `executor`.
void acquire_hold(client const& from, run_plan const& plan, milliseconds wait, asio::any_io_executor executor,
                  asio::cancellation_slot slot, acquired done);

// Is there an answer about what is waited for? `done` runs on `executor`.
void ask_server(client const& from, run_plan const& plan, asio::any_io_executor executor,
                std::function<void(error_code)> done);

// The same error with the server's words, which come with exceptions alone: tries once more, and gives back what it
// may get.
lock_error refusal_of(client const& from, run_plan const& plan, error_code const& error);

}  // namespace latchkey::tool
