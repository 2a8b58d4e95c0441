#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <base/kinds.hpp>
#include <memory>
#include <run/hold.hpp>

namespace latchkey::tool {
namespace {

distributed_lock whole_lock(client const& from, run_plan const& plan) {
  auto first = lock_of(from, plan.kind, plan.name);
  if (plan.also.empty()) return first;
  std::vector<distributed_lock> members{first};
  for (auto const& name : plan.also) members.push_back(lock_of(from, plan.kind, name));
  return from.get_multi_lock(std::move(members));
}

void acquire_permit(client const& from, run_plan const& plan, milliseconds wait, asio::any_io_executor executor,
                    asio::cancellation_slot slot, acquired done) {
  auto const semaphore = from.get_permit_semaphore(plan.name);
  acquire_options options;
  options.wait = wait;
  options.lease = std::min(plan.lease, plan.max_hold);
  auto granted = [done, &plan](error_code error, permit given) {
    done(error, given ? std::optional<hold>(hold(std::move(given), plan)) : std::nullopt);
  };
  auto const acquire = [semaphore, options, executor, slot, granted] {
    semaphore.async_acquire_permit(options, asio::bind_cancellation_slot(slot, asio::bind_executor(executor, granted)));
  };
  if (!plan.permits) return acquire();
  // That cannot be cancelled: whoever has no time is told so, and what it comes to then makes no difference.
  auto const given_up = std::make_shared<bool>(false);
  slot.assign([executor, done, given_up](asio::cancellation_type) {
    *given_up = true;
    asio::post(executor, [done] { done(asio::error::operation_aborted, std::nullopt); });
  });
  auto made = [acquire, done, given_up, slot](error_code error, bool) mutable {
    if (*given_up) return;
    slot.clear();
    if (error)
      done(error, std::nullopt);
    else
      acquire();
  };
  semaphore.async_try_set_permits(*plan.permits, asio::bind_executor(executor, std::move(made)));
}

}  // namespace

void acquire_hold(client const& from, run_plan const& plan, milliseconds wait, asio::any_io_executor executor,
                  asio::cancellation_slot slot, acquired done) {
  if (plan.kind == "semaphore") return acquire_permit(from, plan, wait, executor, slot, std::move(done));
  auto const lock = whole_lock(from, plan);
  acquire_options options;
  options.wait = wait;
  if (plan.max_hold != forever) options.max_hold = plan.max_hold;
  auto granted = [done = std::move(done), lock, id = from.id()](error_code error, lease given) {
    if (!given) return done(error, std::nullopt);
    auto owner = id + ':' + to_string(given.owner());
    done(error, hold(std::move(given), lock, std::move(owner)));
  };
  lock.async_acquire(options, asio::bind_cancellation_slot(slot, asio::bind_executor(executor, std::move(granted))));
}

void ask_server(client const& from, run_plan const& plan, asio::any_io_executor executor,
                std::function<void(error_code)> done) {
  auto answered = [done = std::move(done)](error_code error, auto) { done(error); };
  if (plan.kind == "semaphore")
    from.get_permit_semaphore(plan.name).async_available_permits(asio::bind_executor(executor, std::move(answered)));
  else
    whole_lock(from, plan).async_is_locked(asio::bind_executor(executor, std::move(answered)));
}

lock_error refusal_of(client const& from, run_plan const& plan, error_code const& error) {
  acquire_options options;
  options.wait = milliseconds(error == errc::timeout ? 100 : 500);
  options.lease = plan.lease;
  try {
    if (error != errc::server_error && error != errc::timeout) return lock_error(error);
    if (plan.kind == "semaphore")
      permit const unneeded = from.get_permit_semaphore(plan.name).acquire_permit(options);
    else
      lease const unneeded = whole_lock(from, plan).acquire(options);
  } catch (lock_error const& refusal) {
    return lock_error(error, std::string(refusal.server_text()));
  }
  return lock_error(error);
}

hold::hold(latchkey::lease held, distributed_lock lock, std::string owner)
    : held_(std::move(held)), lock_(std::move(lock)), owner_(std::move(owner)) {}

hold::hold(permit held, run_plan const& plan) : held_(std::move(held)), lease_(plan.lease) {
  owner_ = std::get<permit>(held_).id();
  auto const now = boot_clock();
  if (plan.max_hold != forever) last_ = now + plan.max_hold.count() * one_ms;
  renew_at_ = now + lease_.count() * one_ms / 3;
}

bool hold::held() const {
  return std::visit([](auto const& one) { return one.held(); }, held_);
}

boot_time hold::deadline() const {
  // The clock first: a deadline is rather too early than too late.
  auto const now = boot_clock();
  return now + std::visit([](auto const& one) { return one.remaining(); }, held_).count() * one_ms;
}

std::optional<std::uint64_t> hold::fence() const {
  auto const* const held = std::get_if<latchkey::lease>(&held_);
  return held ? held->fencing_token() : std::nullopt;
}

void hold::on_lost(std::function<void(error_code)> f) {
  std::visit([&](auto& one) { one.on_lost(std::move(f)); }, held_);
}

void hold::renew() {
  auto const now = boot_clock();
  if (now < renew_at_) return;
  auto const length = room();
  if (length <= milliseconds(1)) return;
  renew_at_ = now + lease_.count() * one_ms / 3;
  extend(length, [](error_code, bool) {});
}

milliseconds hold::room() const {
  return last_ == never ? lease_ : std::min(lease_, milliseconds((last_ - boot_clock()) / one_ms));
}

void hold::stop_renewal() {
  renew_at_ = never;
  auto const left = milliseconds((deadline() - boot_clock()) / one_ms);
  if (lock_ && left > milliseconds(1)) extend(left, [](error_code, bool) {});
}

void hold::extend(milliseconds length, std::function<void(error_code, bool)> done) {
  std::visit([&](auto& one) { one.async_extend(length, std::move(done)); }, held_);
}

void hold::confirm(std::function<void(error_code, bool)> done) {
  if (auto const* const held = std::get_if<latchkey::lease>(&held_))
    lock_->async_is_held_by(held->owner(), std::move(done));
  else
    extend(std::max(room(), milliseconds(1)), std::move(done));
}

void hold::release(std::function<void(error_code, release_result)> done) {
  std::visit([&](auto& one) { one.async_release(std::move(done)); }, held_);
}

}  // namespace latchkey::tool
