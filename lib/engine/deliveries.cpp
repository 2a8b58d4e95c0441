#include <engine/deliveries.hpp>

namespace latchkey::detail {

// While one lives its thread runs handlers of a client, and goes on with the queue afterwards.
class deliveries::row {
 public:
  row(deliveries const& of, spot const& where) noexcept : of_(of), where_(where), outer_(innermost_) {
    innermost_ = this;
  }
  ~row() { innermost_ = outer_; }
  row(row const&) = delete;
  row& operator=(row const&) = delete;

  static bool runs(deliveries const& of, handled_call const& call) noexcept {
    return innermost_ && &innermost_->of_ == &of && innermost_->where_.is_of(call);
  }

 private:
  static inline constinit thread_local row* innermost_ = nullptr;
  deliveries const& of_;
  spot const& where_;
  row* outer_;
};

// What the executor runs once for all that is in the queue. One that drops it drops them all.
class deliveries::look {
 public:
  explicit look(std::shared_ptr<deliveries> of) : of_(std::move(of)) {}
  ~look() {
    if (of_) of_->dropped();
  }
  look(look&&) noexcept = default;
  look& operator=(look&&) = delete;

  void operator()() {
    auto const of = std::move(of_);
    of->on_look();
  }

 private:
  std::shared_ptr<deliveries> of_;
};

bool deliveries::keep(handled_call& ended) noexcept {
  handler_place const* const at = ended.place();
  if (!at || forks_.forked()) return false;
  bool const here = row::runs(*this, ended);
  asio::any_io_executor looks;
  {
    std::scoped_lock const lock(mutex_);
    if (queue_.empty()) {
      // What was posted before it is to run before it.
      if (!here || posted_.load(std::memory_order_relaxed) != 0 || (look_ && !where_.is_of(ended))) return false;
    } else if (!where_.is_of(ended)) {
      return false;
    }
    queue_.push_back(ended);
    if (look_) return true;
    look_ = true;
    where_ = {at->runs(), ended.usual()};
    looks = at->takes();  // `ended` may be gone when the mutex is free
  }
  post_look(looks);
  return true;
}

bool deliveries::empty() {
  if (posted_.load(std::memory_order_relaxed) != 0) return false;
  std::scoped_lock const lock(mutex_);
  return queue_.empty();
}

void deliveries::run(handled_call& first) {
  handler_place const* const at = first.place();
  if (!at || forks_.forked()) return first.call_handler();
  auto const kept = shared_from_this();  // the client may go with the handler
  spot const where{at->runs(), first.usual()};
  row const here(*this, where);
  first.call_handler();
  go_on(where);
}

void deliveries::go_on(spot const& where) {
  for (int i = 0; i < most_in_a_row; ++i) {
    handled_call* const next = take(where);
    if (!next) return;
    next->call_handler();
  }
}

handled_call* deliveries::take(spot const& where) noexcept {
  if (forks_.forked()) return nullptr;  // the handler forked: the queue is the parent's
  spot over;
  handled_call* next = nullptr;
  bool looks = false;
  {
    std::scoped_lock const lock(mutex_);
    if (queue_.empty() || !(where_ == where)) return nullptr;
    next = static_cast<handled_call*>(&queue_.front());
    queue_.pop_front();
    if (queue_.empty()) {
      if (!look_) std::swap(over, where_);
    } else {
      looks = !std::exchange(look_, true);
    }
  }
  if (looks) post_look(next->place()->takes());
  return next;
}

void deliveries::on_look() {
  if (forks_.forked()) return;
  spot where;
  {
    std::scoped_lock const lock(mutex_);
    look_ = false;
    if (queue_.empty())
      std::swap(where, where_);
    else
      where = where_;
    if (queue_.empty()) return;
  }
  row const here(*this, where);
  go_on(where);
}

void deliveries::dropped() noexcept {
  if (forks_.forked()) return;
  asio::any_io_executor where;
  boost::intrusive::list<operation> gone;
  {
    std::scoped_lock const lock(mutex_);
    look_ = false;
    gone.swap(queue_);
    where.swap(where_.where);
  }
  while (!gone.empty()) {
    auto* const ended = static_cast<handled_call*>(&gone.front());
    gone.pop_front();
    ended->forget();
  }
}

void deliveries::post_look(asio::any_io_executor const& to) noexcept { asio::post(to, look(shared_from_this())); }

}  // namespace latchkey::detail
