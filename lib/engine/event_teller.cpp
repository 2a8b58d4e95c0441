#include <engine/event_teller.hpp>
#include <latchkey/event.hpp>
#include <latchkey/owner.hpp>

#include <chrono>
#include <string>
#include <utility>

namespace latchkey::detail {

namespace {

bool ends_a_hold(event_type type) {
  return type == event_type::lost || type == event_type::left_to_lease || type == event_type::holder_thread_ended ||
         type == event_type::permit_lost || type == event_type::max_hold_reached;
}

}  // namespace

bool event_queue::push(std::vector<note>& notes) noexcept {
  if (notes.empty()) return false;
  std::scoped_lock const lock(mutex_);
  for (note& note : notes) add(note);
  notes.clear();
  return !std::exchange(delivering_, true);
}

void event_queue::add(note& note) noexcept {
  if (notes_.size() >= (ends_a_hold(note.type) ? most_with_ends : most))
    ++left_out_;
  else
    notes_.push_back(std::move(note));
}

std::optional<note> event_queue::next() {
  std::scoped_lock const lock(mutex_);
  if (!notes_.empty()) {
    std::optional<note> note(std::move(notes_.front()));
    notes_.pop_front();
    return note;
  }
  if (left_out_ > 0) {
    auto const many = std::to_string(std::exchange(left_out_, 0));
    return note{.type = event_type::warning, .text = "on_event is too slow: " + many + " events were left out"};
  }
  delivering_ = false;
  return std::nullopt;
}

void event_queue::abandon() noexcept {
  std::deque<note> unused;
  std::scoped_lock const lock(mutex_);
  unused.swap(notes_);
  left_out_ = 0;
}

void event_teller::report(note const& what) noexcept {
  if (!settings_.on_event) return;
  if (!threads_.own()) return tell(what);
  std::vector<note> notes{what};
  if (queue_.push(notes)) deliver_soon();
}

void event_teller::deliver_soon() noexcept {
  // After the end nobody else is left to do it.
  if (threads_.callbacks_finishing()) return deliver();
  post_();
}

// A part at a time, so that other callbacks have their turns beside a listener who is never done.
void event_teller::deliver() noexcept {
  constexpr int most = 64;
  for (int told = 0; auto const next = queue_.next();) {
    tell(*next);
    if (++told >= most && !threads_.callbacks_finishing()) return deliver_soon();
  }
}

void event_teller::tell(note const& what) noexcept {
  try {
    event shown{};
    shown.type = what.type;
    shown.lock = what.lock;
    if (what.owner != 0) shown.owner = owner_access::from(what.owner);
    shown.error = what.error;
    shown.text = what.text;
    shown.took = std::chrono::duration_cast<std::chrono::microseconds>(what.took);
    shown.kind = what.kind;
    shown.context = what.context;
    settings_.on_event(shown);
  } catch (...) {
    // Said once: it will most likely throw again.
    if (!listener_failed_.exchange(true)) callback_failed(std::current_exception());
  }
}

void event_teller::callback_failed(std::exception_ptr const& what) noexcept {
  note said{.type = event_type::callback_failed};
  try {
    std::rethrow_exception(what);
  } catch (std::exception const& problem) {
    said.text = problem.what();
  } catch (...) {
    said.text = "not a std::exception";
  }
  report(said);
}

}  // namespace latchkey::detail
