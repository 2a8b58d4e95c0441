#include <engine/event_queue.hpp>

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
  for (note& one : notes) add(one);
  notes.clear();
  return !std::exchange(delivering_, true);
}

void event_queue::add(note& one) noexcept {
  if (notes_.size() >= (ends_a_hold(one.type) ? most_with_ends : most))
    ++left_out_;
  else
    notes_.push_back(std::move(one));
}

std::optional<note> event_queue::next() {
  std::scoped_lock const lock(mutex_);
  if (!notes_.empty()) {
    std::optional<note> one(std::move(notes_.front()));
    notes_.pop_front();
    return one;
  }
  if (left_out_ > 0) {
    std::optional<note> said(std::in_place);
    said->type = event_type::warning;
    said->text = "on_event is too slow: " + std::to_string(std::exchange(left_out_, 0)) + " events were left out";
    return said;
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

}  // namespace latchkey::detail
