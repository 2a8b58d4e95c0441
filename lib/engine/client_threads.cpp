#include <engine/client_threads.hpp>
#include <latchkey/error.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>

#include <exception>
#include <new>
#include <string>
#include <system_error>

namespace latchkey::detail {

namespace {

constinit thread_local executor_probe::mark* innermost = nullptr;

// Properties are part of an executor's type: bring it to the plain one, which can be recognised.
asio::any_io_executor plain(asio::any_io_executor const& given) {
  asio::any_io_executor plain_one = asio::prefer(given, asio::execution::blocking.possibly);
  plain_one = asio::prefer(plain_one, asio::execution::outstanding_work.untracked);
  return asio::prefer(plain_one, asio::execution::relationship.fork);
}

template <class Executor>
bool inside_context(asio::any_io_executor const& executor) {
  auto const* known = executor.target<Executor>();
  return known != nullptr && known->running_in_this_thread();
}

template <class Inner>
bool inside_strand(asio::any_io_executor const& executor) {
  auto const* known = executor.target<asio::strand<Inner>>();
  return known != nullptr && (known->running_in_this_thread() ||
                              inside_context<asio::io_context::executor_type>(known->get_inner_executor()) ||
                              inside_context<asio::thread_pool::executor_type>(known->get_inner_executor()));
}

bool inside_unknown(asio::any_io_executor const&) { return false; }

// Found once: what sort of executor it is takes longer to find out than what it says.
executor_probe::question question_for(asio::any_io_executor const& executor) {
  if (executor.target<asio::io_context::executor_type>()) return inside_context<asio::io_context::executor_type>;
  if (executor.target<asio::thread_pool::executor_type>()) return inside_context<asio::thread_pool::executor_type>;
  if (executor.target<asio::strand<asio::io_context::executor_type>>())
    return inside_strand<asio::io_context::executor_type>;
  if (executor.target<asio::strand<asio::thread_pool::executor_type>>())
    return inside_strand<asio::thread_pool::executor_type>;
  if (executor.target<asio::strand<asio::any_io_executor>>()) return inside_strand<asio::any_io_executor>;
  return inside_unknown;
}

}  // namespace

executor_probe::executor_probe(asio::any_io_executor const& executor)
    : executor_(plain(executor)), asks_(question_for(executor_)) {}

bool executor_probe::inside() const noexcept {
  for (mark* inner = innermost; inner != nullptr; inner = inner->outer_)
    if (inner->probe_ == this) return true;
  return asks_(executor_);
}

executor_probe::mark::mark(executor_probe const& probe) noexcept : probe_(&probe), outer_(innermost) {
  innermost = this;
}

executor_probe::mark::~mark() { innermost = outer_; }

namespace {

// Asio takes descriptors with the first timer of an execution context. Later there may be none left, at a place that
// can tell nobody.
void prepare_timers(asio::any_io_executor const& executor) try {
  asio::steady_timer const unused(executor);
} catch (std::bad_alloc const&) {
  throw;
} catch (std::exception const& problem) {
  throw lock_error(errc::connect_failed, std::string("no timers: ") + problem.what());
}

}  // namespace

client_threads::client_threads(std::optional<asio::any_io_executor> given, fork_guard const& forks)
    : forks_(forks),
      thread_(given ? nullptr : std::make_unique<io_thread>()),
      callbacks_(given ? nullptr : std::make_unique<io_thread>(io_thread::begins::when_needed)),
      executor_(given ? std::move(*given) : thread_->executor()),
      probe_(executor_) {
  prepare_timers(executor_);
}

void client_threads::start(std::function<void(std::exception_ptr)> const& escaped) try {
  if (!thread_) return;
  callbacks_->start(escaped, executor_);
  thread_->start([escaped](std::exception_ptr const& what) {
    try {
      std::rethrow_exception(what);
    } catch (std::bad_alloc const&) {
      std::terminate();  // Asio has lost a handler of ours, and with it the client would stand still
    } catch (...) {
      escaped(what);
    }
  });
} catch (std::system_error const& problem) {
  throw lock_error(errc::connect_failed, std::string("no thread: ") + problem.what());
}

void client_threads::finish() {
  if (thread_) thread_->finish();
  if (callbacks_) callbacks_->finish();
}

bool client_threads::join_until(instant end) {
  thread_->join_until(end);
  return callbacks_->join_until(end);
}

asio::any_io_executor client_threads::tracked_executor() const {
  return callbacks_ ? callbacks_->tracked() : tracked_io_executor();
}

asio::any_io_executor client_threads::handler_executor() const {
  if (!callbacks_) return executor_;
  if (!forks_.forked() && callbacks_->finishing()) return asio::system_executor();
  return callbacks_->executor();
}

asio::any_io_executor client_threads::tracked_io_executor() const {
  if (thread_) return thread_->tracked();
  return asio::prefer(executor_, asio::execution::outstanding_work.tracked);
}

asio::any_io_executor client_threads::io_executor() const {
  if (thread_ && !forks_.forked() && thread_->finishing()) return asio::system_executor();
  return executor_;
}

}  // namespace latchkey::detail
