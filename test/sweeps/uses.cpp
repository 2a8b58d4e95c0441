#include <support/errors.hpp>
#include <sweeps/uses.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>

namespace latchkey::test {

namespace {

constexpr int permits = 2;

lease got(lease one) {
  if (!one.held()) throw boost::system::system_error(errc::timeout);
  return one;
}

bool lock_is_free(lock_kind const& kind, clients const& all, std::string const& name) {
  return !kind.make(all, name).is_locked();
}

bool permits_are_free(clients const& all, std::string const& name) {
  return all[0].get_permit_semaphore(name).acquired_permits() == 0;
}

void add_lock(std::vector<use>& made, lock_kind const& kind) {
  auto const is_free = [kind](clients const& all, std::string const& name) { return lock_is_free(kind, all, name); };
  auto const add = [&](std::string what, std::function<void(distributed_lock const&)> run) {
    made.push_back(
        {kind.name, std::move(what),
         [kind, run = std::move(run)](clients const& all, std::string const& name) { run(kind.make(all, name)); },
         is_free, true});
  };
  add("acquire, extend, release", [](distributed_lock const& lock) {
    lease held = got(lock.acquire({.wait = sweep_wait, .lease = sweep_lease}));
    static_cast<void>(held.extend(sweep_lease));
    static_cast<void>(held.release());
  });
  add("acquire for the watchdog, and drop",
      [](distributed_lock const& lock) { lease const held = got(lock.acquire({.wait = sweep_wait})); });
  bool const joint = kind.joint();
  add("try_lock, ask, unlock", [joint](distributed_lock const& lock) {
    if (!lock.try_lock()) return;
    static_cast<void>(lock.is_locked());
    static_cast<void>(lock.is_held_by_current_thread());
    static_cast<void>(lock.hold_count());
    if (!joint) static_cast<void>(lock.remaining_time_to_live());
    lock.unlock();
  });
  add("async_acquire, async_release", [](distributed_lock const& lock) {
    lease held = got(value_of(lock.async_acquire({.wait = sweep_wait}, asio::use_future)));
    static_cast<void>(value_of(held.async_extend(sweep_lease, asio::use_future)));
    static_cast<void>(value_of(held.async_release(asio::use_future)));
  });
  add("async_try_lock, async_unlock", [](distributed_lock const& lock) {
    owner const who = owner::make();
    if (value_of(lock.async_try_lock(who, 0ms, sweep_lease, asio::use_future)))
      value_of(lock.async_unlock(who, asio::use_future));
  });
  if (!joint)
    add("acquire and force_unlock", [](distributed_lock const& lock) {
      lease const held = got(lock.acquire({.wait = sweep_wait}));
      static_cast<void>(lock.force_unlock());
    });
}

void add_semaphore(std::vector<use>& made) {
  made.push_back({"semaphore",
                  "all of it",
                  [](clients const& all, std::string const& name) {
                    auto const it = all[0].get_semaphore(name);
                    static_cast<void>(it.try_set_permits(permits));
                    static_cast<void>(it.available_permits());
                    if (it.try_acquire()) it.release();
                    if (value_of(it.async_try_acquire(asio::use_future))) value_of(it.async_release(asio::use_future));
                    it.add_permits(1);
                    static_cast<void>(it.drain_permits());
                  },
                  {}});
}

void add_permit_semaphore(std::vector<use>& made) {
  auto const add = [&](std::string what, std::function<void(permit_semaphore const&)> run) {
    made.push_back({"permit_semaphore", std::move(what),
                    [run = std::move(run)](clients const& all, std::string const& name) {
                      auto const it = all[0].get_permit_semaphore(name);
                      it.set_permits(permits);
                      run(it);
                    },
                    permits_are_free});
  };
  add("try_acquire, update, release", [](permit_semaphore const& it) {
    auto const id = it.try_acquire(0ms, sweep_lease);
    if (!id) return;
    static_cast<void>(it.update_lease_time(*id, sweep_lease));
    static_cast<void>(it.acquired_permits());
    it.release(*id);
  });
  add("acquire_permit, drop", [](permit_semaphore const& it) {
    permit const held = it.acquire_permit({.wait = sweep_wait, .lease = sweep_lease});
  });
  add("async_acquire_permit, async_release", [](permit_semaphore const& it) {
    permit const held = value_of(it.async_acquire_permit({.wait = sweep_wait, .lease = sweep_lease}, asio::use_future));
    auto const id = value_of(it.async_try_acquire(0ms, sweep_lease, asio::use_future));
    if (id) value_of(it.async_release(*id, asio::use_future));
  });
}

void add_latch(std::vector<use>& made) {
  made.push_back({"count_down_latch",
                  "all of it",
                  [](clients const& all, std::string const& name) {
                    auto const it = all[0].get_count_down_latch(name);
                    if (!it.try_set_count(1)) return;
                    auto waiting = it.async_wait(asio::use_future);
                    static_cast<void>(it.count());
                    it.count_down();
                    value_of(std::move(waiting));
                    value_of(it.async_count_down(asio::use_future));
                  },
                  {}});
}

// --- what waits ---

void add_lock_wait(std::vector<waiting_call>& made, lock_kind const& kind) {
  // Readers wait for a writer only.
  lock_kind const against = kind.name == "read_lock" ? lock_kind_of("write_lock") : kind;
  made.push_back({kind.name,
                  [against](clients const& theirs, std::string const& name) -> std::function<void()> {
                    auto const held = std::make_shared<lease>(against.make(theirs, name).acquire());
                    return [held] { static_cast<void>(held->release()); };
                  },
                  [kind](clients const& all, std::string const& name, asio::cancellation_slot slot,
                         std::function<void(error_code)> done) {
                    kind.make(all, name).async_acquire(asio::bind_cancellation_slot(
                        slot, [done = std::move(done)](error_code error, lease const&) { done(error); }));
                  },
                  [kind](clients const& all, std::string const& name) { return lock_is_free(kind, all, name); }});
}

}  // namespace

std::vector<use> const& every_use() {
  static auto const all = [] {
    std::vector<use> made;
    for (auto const& kind : lock_kinds()) add_lock(made, kind);
    add_semaphore(made);
    add_permit_semaphore(made);
    add_latch(made);
    return made;
  }();
  return all;
}

std::vector<waiting_call> const& every_waiting_call() {
  static auto const all = [] {
    std::vector<waiting_call> made;
    for (auto const& kind : lock_kinds()) add_lock_wait(made, kind);
    made.push_back({"permit_semaphore",
                    [](clients const& theirs, std::string const& name) -> std::function<void()> {
                      auto const it = theirs[0].get_permit_semaphore(name);
                      it.set_permits(permits);
                      auto const first = std::make_shared<permit>(it.acquire_permit());
                      auto const second = std::make_shared<permit>(it.acquire_permit());
                      return [first, second] {
                        static_cast<void>(first->release());
                        static_cast<void>(second->release());
                      };
                    },
                    [](clients const& all, std::string const& name, asio::cancellation_slot slot,
                       std::function<void(error_code)> done) {
                      all[0].get_permit_semaphore(name).async_acquire_permit(asio::bind_cancellation_slot(
                          slot, [done = std::move(done)](error_code error, permit const&) { done(error); }));
                    },
                    permits_are_free});
    made.push_back({"semaphore",
                    [](clients const& theirs, std::string const& name) -> std::function<void()> {
                      auto const it = theirs[0].get_semaphore(name);
                      static_cast<void>(it.try_set_permits(0));
                      return [it] { it.release(); };
                    },
                    [](clients const& all, std::string const& name, asio::cancellation_slot slot,
                       std::function<void(error_code)> done) {
                      all[0].get_semaphore(name).async_acquire(asio::bind_cancellation_slot(slot, std::move(done)));
                    },
                    [](clients const& all, std::string const& name) {
                      return all[0].get_semaphore(name).available_permits() == 1;
                    },
                    [](clients const& theirs, std::string const& name) { theirs[0].get_semaphore(name).release(); }});
    made.push_back({"count_down_latch",
                    [](clients const& theirs, std::string const& name) -> std::function<void()> {
                      auto const it = theirs[0].get_count_down_latch(name);
                      static_cast<void>(it.try_set_count(1));
                      return [it] { it.count_down(); };
                    },
                    [](clients const& all, std::string const& name, asio::cancellation_slot slot,
                       std::function<void(error_code)> done) {
                      all[0].get_count_down_latch(name).async_wait(asio::bind_cancellation_slot(slot, std::move(done)));
                    },
                    {}});
    return made;
  }();
  return all;
}

}  // namespace latchkey::test
