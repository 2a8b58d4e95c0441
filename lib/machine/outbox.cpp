#include <machine/outbox.hpp>

#include <machine/context.hpp>

#include <algorithm>

namespace latchkey::detail {

namespace {

constexpr std::size_t most_told = 1'000;

outbox::order order_of(ask what) {
  switch (what) {
    case ask::acquire: return outbox::acquires;
    case ask::hand_off: return outbox::hand_offs;
    case ask::renew:
    case ask::extend: return outbox::extensions;
    default: return outbox::releases;
  }
}

}  // namespace

void outbox::add(owner_state& state) {
  remove(state);
  auto const into = order_of(state.ask_->what);
  state.ask_.place()->outbox_order = into;
  lists_[into].push_back(state);
  shared_.out->turn = true;
}

void outbox::add(renewal& renewal) {
  renewals_.push_back(renewal);
  shared_.out->turn = true;
}

void outbox::add(operation& plain) {
  plain_.push_back(plain);
  shared_.out->turn = true;
}

// What is due a rest waits, longer each time, and nothing else there does.
void outbox::rest(detour const& of) {
  if (!of.due_a_rest() || rests_until_ > shared_.now) return;
  rests_until_ = after(shared_.now, shared_.pause(of.rests(), shared_.settings.retry_delay));
}

void outbox::remove(owner_state& state) {
  if (!state.in_outbox()) return;
  auto& list = lists_[state.ask_.place()->outbox_order];
  list.erase(list.iterator_to(state));
}

void outbox::remove(renewal& renewal) {
  if (renewal.is_linked()) renewals_.erase(renewals_.iterator_to(renewal));
}

void outbox::remove(operation& plain) {
  if (static_cast<queue_hook&>(plain).is_linked()) plain_.erase(plain_.iterator_to(plain));
}

void outbox::forget_renewals() {
  for (auto& renewal : renewals_) renewal.under_way = false;
  renewals_.clear();
  told_.clear();
}

void outbox::tell(kind const& which, std::string_view name) {
  auto const& rules = which.rules();
  if (!rules.listens || rules.own_channel || !which.wakes(freed_message) || told_.size() >= most_told) return;
  told_.push_back(which.channel(name, {}));
  shared_.out->turn = true;
}

bool outbox::empty() const {
  return told_.empty() && std::all_of(lists_.begin(), lists_.end(), [](auto const& list) { return list.empty(); }) &&
         renewals_.empty() && plain_.empty();
}

}  // namespace latchkey::detail
