#include <api/lock_key.hpp>
#include <latchkey/distributed_lock.hpp>

namespace latchkey {

std_mutex::std_mutex(distributed_lock lock) noexcept : lock_(std::move(lock)) {}

void std_mutex::lock() const { lock_.lock(); }
bool std_mutex::try_lock() const { return lock_.try_lock(); }

void std_mutex::unlock() const noexcept try { lock_.unlock(); } catch (boost::system::system_error const& problem) {
  detail::core& engine = *lock_.key_->engine;
  if (engine.forked()) return;
  detail::note said;
  said.type = event_type::unlock_failed;
  said.lock = lock_.key_->name;
  said.owner = detail::owner_access::number(owner::this_thread());
  said.error = problem.code();
  said.text = problem.what();
  engine.report(said);
} catch (...) {
  // No memory, not even to say so: the lease ends the hold.
}

}  // namespace latchkey
