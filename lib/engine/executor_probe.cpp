#include <engine/executor_probe.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

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

}  // namespace

executor_probe::executor_probe(asio::any_io_executor const& executor) : executor_(plain(executor)) {}

bool executor_probe::inside() const noexcept {
  for (mark* one = innermost; one != nullptr; one = one->outer_)
    if (one->probe_ == this) return true;
  return inside_context<asio::io_context::executor_type>(executor_) ||
         inside_context<asio::thread_pool::executor_type>(executor_) ||
         inside_strand<asio::io_context::executor_type>(executor_) ||
         inside_strand<asio::thread_pool::executor_type>(executor_) || inside_strand<asio::any_io_executor>(executor_);
}

executor_probe::mark::mark(executor_probe const& probe) noexcept : probe_(&probe), outer_(innermost) {
  innermost = this;
}

executor_probe::mark::~mark() { innermost = outer_; }

}  // namespace latchkey::detail
