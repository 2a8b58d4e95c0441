#include <engine/event_teller.hpp>

#include <latchkey/event.hpp>
#include <latchkey/owner.hpp>

#include <chrono>

namespace latchkey::detail {

void event_teller::report(note const& what) noexcept {
  if (!settings_.on_event) return;
  if (!threads_.own()) return tell(what);
  std::vector<note> one{what};
  if (queue_.push(one)) deliver_soon();
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
  note said;
  said.type = event_type::callback_failed;
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
