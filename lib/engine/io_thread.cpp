#include <base/clock.hpp>
#include <engine/io_thread.hpp>
#include <engine/quiet_signals.hpp>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/system_executor.hpp>

#include <condition_variable>
#include <mutex>
#include <optional>

namespace latchkey::detail {

using guard_type = asio::executor_work_guard<asio::io_context::executor_type>;

struct io_thread::shared {
  asio::io_context context{1};
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<guard_type> guard{std::in_place, context.get_executor()};
  bool ended = false;

  void run(std::function<void(std::exception_ptr)> const& escaped) {
    for (bool again = true; again;) {
      try {
        context.run();
        again = false;
      } catch (...) {
        escaped(std::current_exception());
      }
    }
    {
      std::scoped_lock const lock(mutex);
      ended = true;
    }
    changed.notify_all();
  }
};

io_thread::io_thread() : shared_(std::make_shared<shared>()) {}

io_thread::~io_thread() {
  finish();
  join_until(after(boot_now(), milliseconds(100)));
  if (thread_.joinable()) thread_.detach();
}

void io_thread::start(std::function<void(std::exception_ptr)> escaped) {
  quiet_signals const blocked;  // the thread inherits the mask: signals are the program's
  thread_ = std::thread([mine = shared_, told = std::move(escaped)] { mine->run(told); });
}

asio::any_io_executor io_thread::executor() const { return shared_->context.get_executor(); }

asio::any_io_executor io_thread::tracked() const {
  std::scoped_lock const lock(shared_->mutex);
  if (!shared_->guard) return asio::system_executor();
  return asio::prefer(executor(), asio::execution::outstanding_work.tracked);
}

bool io_thread::on_thread() const { return shared_->context.get_executor().running_in_this_thread(); }

bool io_thread::finishing() const {
  std::scoped_lock const lock(shared_->mutex);
  return !shared_->guard;
}

void io_thread::finish() {
  std::scoped_lock const lock(shared_->mutex);
  shared_->guard.reset();
}

bool io_thread::join_until(instant end) {
  std::thread over;
  {
    std::unique_lock lock(shared_->mutex);
    if (!thread_.joinable()) return true;
    if (thread_.get_id() == std::this_thread::get_id()) return false;
    auto const rest = std::chrono::steady_clock::now() + std::chrono::duration_cast<nanoseconds>(left(boot_now(), end));
    if (!shared_->changed.wait_until(lock, rest, [&] { return shared_->ended; })) return false;
    over.swap(thread_);  // for one of several callers
  }
  if (over.joinable()) over.join();
  return true;
}

}  // namespace latchkey::detail
