#pragma once

#include <api/async_call.hpp>
#include <api/loss_watch.hpp>
#include <engine/lock_key.hpp>
#include <engine/loss_listener.hpp>
#include <engine/requests.hpp>
#include <latchkey/lease.hpp>

#include <atomic>
#include <memory>
#include <stop_token>
#include <tuple>

namespace latchkey::detail {

// What a lease and the machine share about one hold. The machine writes the hold_link; the rest is the lease's.
class lease_state final : public loss_listener, public std::enable_shared_from_this<lease_state> {
 public:
  lease_state(std::shared_ptr<lock_key const> key, owner who, acquire_options const& options);
  ~lease_state();

  // The acquire was granted: from now on there is a hold to release.
  void granted(operation const& call);
  // Of a hold that was granted to another process: not by an answer.
  void set_token(std::uint64_t token) { set_more().token = token; }
  static lease make_lease(std::shared_ptr<lease_state> state) noexcept { return lease(std::move(state)); }

  lock_key const& key() const { return *key_; }
  owner who() const { return owner_; }
  hold_id hold() const { return hold_; }
  std::uint64_t token() const { return more().token; }
  std::stop_token stop_token() { return watch().token(); }

  bool released() const noexcept { return released_.load(std::memory_order_acquire); }
  bool is_lost() const noexcept { return lost.load(std::memory_order_acquire); }

  // True for one caller only: he is the one who releases. Afterwards no callback begins.
  bool claim_release() noexcept;
  // Waits for a callback that is running, unless this is its own thread.
  void await_callback() noexcept {
    if (auto* const known = watch_.load()) known->await_callback();
  }
  // Releases in the background what nobody has released yet.
  void drop() noexcept;
  // The same for who has claimed the release and has no memory for it.
  void give_up() noexcept;

  void set_callback(lost_callback callback);

  std::shared_ptr<loss_listener> self() noexcept override { return weak_from_this().lock(); }
  void tell(error_code const& why) override;

 private:
  loss_watch& watch();

  std::shared_ptr<lock_key const> key_;
  owner owner_;
  hold_id hold_ = 0;
  std::atomic<loss_watch*> watch_{nullptr};  // made when it is first asked for, or told: most holds have none
};

// Of an asynchronous call that ends with a hold.
struct give_lease {
  std::shared_ptr<lease_state> state;

  std::tuple<error_code, lease> operator()(operation const& call) {
    if (call.error || !call.yes) return {call.error, lease()};
    state->granted(call);
    return {error_code(), lease_state::make_lease(std::move(state))};
  }
  // Nobody has seen the lease, nobody will release it.
  void abandon(operation const& call) {
    if (!call.yes || !state) return;
    state->granted(call);
    state->drop();
  }
};

// A blocking acquire of this owner, filled by `fill`. Empty: still busy as its wait ended, or a stop was asked for.
template <class Fill>
lease acquire_lease(std::shared_ptr<lock_key const> const& key, owner who, acquire_options const& options,
                    std::stop_token const& stop, Fill const& fill) {
  auto state = std::make_shared<lease_state>(key, who, options);
  blocking_call call;
  throw_if(fill(call));
  if (stop.stop_requested()) return {};
  call.link = state.get();
  key->run(call, stop);
  if (call.error == asio::error::operation_aborted) return {};
  throw_if(call);
  if (!call.yes) return {};
  state->granted(call);
  return lease_state::make_lease(std::move(state));
}

// The asynchronous form.
template <class Finish, class Fill, class... Values>
void start_acquire_lease(std::shared_ptr<lease_state> const& state, handler<void(error_code, Values...)> done,
                         Finish finish, Fill const& fill) {
  // The machine may name the link until the call is over.
  auto call = make_async_call(state->key(), state, std::move(done), std::move(finish));
  refusal const wrong = fill(*call);
  call->link = state.get();
  call->begin(wrong);
}

}  // namespace latchkey::detail
