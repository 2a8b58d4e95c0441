#include <engine/lock_key.hpp>
#include <latchkey/distributed_lock.hpp>

namespace latchkey {

namespace {

void report(detail::lock_key const& key, event_type type, error_code const& why, char const* text) {
  detail::core& engine = *key.engine;
  if (engine.forked()) return;
  detail::note said;
  said.type = type;
  said.lock = key.name;
  said.owner = detail::owner_access::number(owner::this_thread());
  said.error = why;
  said.text = text;
  engine.report(said);
}

bool unanswered(error_code const& why) {
  return why == errc::timeout || why == errc::connection_lost || why == errc::connect_failed;
}

}  // namespace

std_mutex::std_mutex(distributed_lock lock) noexcept : lock_(std::move(lock)) {}

void std_mutex::lock() const { lock_.lock(); }
bool std_mutex::try_lock() const { return lock_.try_lock(); }

bool std_mutex::try_for(timespan wait) const try { return lock_.try_lock(wait); } catch (lock_error const& problem) {
  if (!unanswered(problem.code())) throw;
  report(*lock_.key_, event_type::warning, problem.code(), problem.what());
  return false;
}

void std_mutex::unlock() const noexcept try { lock_.unlock(); } catch (boost::system::system_error const& problem) {
  report(*lock_.key_, event_type::unlock_failed, problem.code(), problem.what());
}

}  // namespace latchkey
