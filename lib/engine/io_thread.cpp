#include <base/clock.hpp>
#include <engine/guards.hpp>
#include <engine/io_thread.hpp>

#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/system_executor.hpp>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

namespace latchkey::detail {

namespace {

// An executor that says when it is about to be used: before it runs something, and before somebody makes a timer or a
// socket on its context. `Starter` has a member begin() noexcept.
template <class Inner, class Starter>
class starting_executor {
 public:
  starting_executor(Inner inner, std::shared_ptr<Starter> starter) noexcept
      : inner_(std::move(inner)), starter_(std::move(starter)) {}

  friend bool operator==(starting_executor const& a, starting_executor const& b) noexcept {
    return a.starter_ == b.starter_ && a.inner_ == b.inner_;
  }

  template <class F>
  void execute(F&& f) const {
    inner_.execute(std::forward<F>(f));
    starter_->begin();
  }

  template <class Property>
  requires asio::can_query_v<Inner const&, Property>
  decltype(auto) query(Property const& property) const noexcept {
    using found = typename asio::query_result<Inner const&, Property>::type;
    if constexpr (std::is_convertible_v<found, asio::execution_context&>) starter_->begin();
    return asio::query(inner_, property);
  }

  template <class Property>
  requires asio::can_require_v<Inner const&, Property>
  auto require(Property const& property) const { return over(asio::require(inner_, property)); }
  template <class Property>
  requires asio::can_prefer_v<Inner const&, Property>
  auto prefer(Property const& property) const { return over(asio::prefer(inner_, property)); }

 private:
  template <class Other>
  starting_executor<Other, Starter> over(Other other) const {
    return {std::move(other), starter_};
  }

  Inner inner_;
  std::shared_ptr<Starter> starter_;
};

using guard_type = asio::executor_work_guard<asio::io_context::executor_type>;

}  // namespace

class io_thread::shared : public std::enable_shared_from_this<shared> {
 public:
  ~shared() {
    if (thread_.joinable()) thread_.detach();
  }

  // Once; where no thread can be had, the next who asks tries again, and what was asked for is done elsewhere.
  void begin() noexcept {
    if (begun_.load(std::memory_order_acquire)) return;
    std::scoped_lock const lock(mutex);
    if (begun_.load(std::memory_order_relaxed)) return;
    try {
      start();
    } catch (std::system_error const&) {
      asio::post(instead, [mine = shared_from_this()] { mine->run_some(); });
    }
  }

  // Under the mutex, or before anybody else knows of it.
  void start() {
    quiet_signals const blocked;  // the thread inherits the mask: signals are the program's
    thread_ = std::thread([mine = shared_from_this()] { mine->run(); });
    begun_.store(true, std::memory_order_release);
  }

  bool join_until(instant end) {
    std::thread over;
    {
      std::unique_lock lock(mutex);
      if (!thread_.joinable()) return true;
      if (thread_.get_id() == std::this_thread::get_id()) return false;
      auto const rest =
          std::chrono::steady_clock::now() + std::chrono::duration_cast<nanoseconds>(left(boot_now(), end));
      if (!changed_.wait_until(lock, rest, [&] { return ended_; })) return false;
      over.swap(thread_);  // for one of several callers
    }
    if (over.joinable()) over.join();
    return true;
  }

  void leave() {
    std::scoped_lock const lock(mutex);
    if (thread_.joinable()) thread_.detach();
  }

  asio::io_context context{1};
  std::mutex mutex;
  std::optional<guard_type> guard{std::in_place, context.get_executor()};
  std::function<void(std::exception_ptr)> escaped;
  asio::any_io_executor instead;

 private:
  void run_some() noexcept try { context.poll(); } catch (...) {
    escaped(std::current_exception());
  }

  void run() {
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
      ended_ = true;
    }
    changed_.notify_all();
  }

  std::condition_variable changed_;
  std::atomic<bool> begun_{false};
  std::thread thread_;
  bool ended_ = false;
};

io_thread::io_thread(begins when) : when_(when), shared_(std::make_shared<shared>()) {}

io_thread::~io_thread() {
  finish();
  join_until(after(boot_now(), milliseconds(100)));
  shared_->leave();
}

void io_thread::start(std::function<void(std::exception_ptr)> escaped, asio::any_io_executor instead) {
  shared_->escaped = std::move(escaped);
  shared_->instead = std::move(instead);
  if (when_ == begins::at_once) shared_->start();
}

asio::any_io_executor io_thread::executor() const {
  auto const plain = shared_->context.get_executor();
  if (when_ == begins::at_once) return plain;
  return starting_executor<asio::io_context::executor_type, shared>(plain, shared_);
}

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

bool io_thread::join_until(instant end) { return shared_->join_until(end); }

}  // namespace latchkey::detail
