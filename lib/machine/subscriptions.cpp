#include <machine/subscriptions.hpp>

#include <machine/context.hpp>

#include <algorithm>

namespace latchkey::detail {

void subscriptions::want(std::string const& channel, listener& who) {
  auto const [found, is_new] = channels_.try_emplace(channel);
  entry& subscription = found->second;
  subscription.listeners.push_back(who);
  shared_.counters.subscriptions += is_new;
  shared_.out->turn = true;  // the connection may have to be opened first
  if (subscription.state == listener::view::off) {
    subscription.state = listener::view::asked;
    if (up_) ask(channel);
  }
  who.view_ = seen(subscription);
}

void subscriptions::drop(std::string const& channel, listener& who) {
  who.view_ = listener::view::off;
  auto found = channels_.find(channel);
  if (found == channels_.end() || !who.is_linked()) return;
  entry& subscription = found->second;
  subscription.listeners.erase(subscription.listeners.iterator_to(who));
  if (!subscription.listeners.empty()) return;
  bool const refused = subscription.state == listener::view::refused && !unconfirmed_.contains(channel);
  if (up_ && subscription.state != listener::view::off && !refused) {
    unsent_.push_back({false, channel});
    shared_.out->turn = true;
  }
  // From here on it counts as not subscribed, whatever still arrives.
  channels_.erase(found);
  --shared_.counters.subscriptions;
}

void subscriptions::connected() {
  up_ = true;
  refusal_noted_ = false;
  shared_.counters.messages_refused = false;
  unsent_.clear();
  put_off_.clear();
  asked_.clear();
  unconfirmed_.clear();
  for (auto& [channel, subscription] : channels_) {
    set_state(subscription, listener::view::asked);
    ask(channel);
  }
}

void subscriptions::disconnected(bool unreliable) {
  up_ = false;
  unsent_.clear();
  put_off_.clear();
  asked_.clear();
  unconfirmed_.clear();
  bool const before = std::exchange(unreliable_, unreliable);
  if (unreliable) shared_.counters.messages_refused = true;
  std::vector<listener*> deaf;
  for (auto& [channel, subscription] : channels_) {
    bool const heard =
        subscription.state == listener::view::on || (!before && subscription.state == listener::view::asked);
    if (subscription.state != listener::view::refused) set_state(subscription, listener::view::asked);
    if (!unreliable || !heard) continue;
    for (auto& who : subscription.listeners) deaf.push_back(&who);
  }
  for (listener* who : deaf) who->on_refused();
}

void subscriptions::ask(std::string const& channel) {
  unsent_.push_back({true, channel});
  ++unconfirmed_[channel];
  shared_.out->turn = true;
}

std::vector<subscriptions::command> subscriptions::take_unsent() {
  for (auto const& unsent : unsent_)
    if (unsent.subscribe) asked_.push_back(unsent.channel);
  return std::exchange(unsent_, {});
}

// One SUBSCRIBE was answered. True: it was the last one of its channel.
bool subscriptions::answered() {
  if (asked_.empty()) return true;
  auto const count = unconfirmed_.find(asked_.front());
  bool const last = --count->second == 0;
  if (last) unconfirmed_.erase(count);
  asked_.pop_front();
  return last;
}

void subscriptions::confirmed(std::string_view channel) {
  bool const last = answered();
  auto found = channels_.find(std::string(channel));
  if (found == channels_.end()) return;
  entry& subscription = found->second;
  if (!last || subscription.state == listener::view::on) return;
  if (subscription.state == listener::view::refused) shared_.counters.messages_refused = refusal_noted_ = false;
  set_state(subscription, listener::view::on);
  for (auto it = subscription.listeners.begin(); it != subscription.listeners.end();) (it++)->on_confirmed();
}

// Who waits for this channel polls from now on, and asks again when it looks.
void subscriptions::refused_by_server(std::string_view text) {
  if (asked_.empty()) return;
  std::string const channel = asked_.front();
  if (!std::exchange(refusal_noted_, true))
    shared_.note(event_type::subscribe_refused, {}, 0, errc::server_error, text);
  shared_.counters.messages_refused = true;
  auto const found = answered() ? channels_.find(channel) : channels_.end();
  if (found == channels_.end() || found->second.state == listener::view::refused) return;
  set_state(found->second, listener::view::refused);
  std::vector<listener*> all;
  for (auto& who : found->second.listeners) all.push_back(&who);
  for (listener* who : all) who->on_refused();
}

void subscriptions::ask_refused(std::string const& channel) {
  auto const found = channels_.find(channel);
  if (found == channels_.end() || !up_ || found->second.state != listener::view::refused) return;
  if (!unconfirmed_.contains(channel)) ask(channel);
}

void subscriptions::put_off() {
  if (asked_.empty()) return;
  std::string channel = asked_.front();
  if (answered()) put_off_.push_back(std::move(channel));
}

void subscriptions::ask_again() {
  for (auto& channel : std::exchange(put_off_, {})) {
    auto const found = channels_.find(channel);
    if (found == channels_.end() || !up_ || found->second.state != listener::view::asked) continue;
    if (!unconfirmed_.contains(channel)) ask(channel);
  }
}

bool subscriptions::ended_by_server(std::string_view channel) {
  auto const found = channels_.find(std::string(channel));
  if (found == channels_.end() || found->second.state != listener::view::on) return false;
  set_state(found->second, listener::view::asked);
  ask(found->first);
  return true;
}

void subscriptions::message(std::string_view channel, std::string_view payload) {
  auto found = channels_.find(std::string(channel));
  if (found == channels_.end()) return;
  auto& listeners = found->second.listeners;
  for (auto it = listeners.begin(); it != listeners.end();) (it++)->on_message(payload);
}

// Until it is confirmed, a channel whose connections never last is no better than one that is refused.
listener::view subscriptions::seen(entry const& subscription) const {
  return unreliable_ && subscription.state == listener::view::asked ? listener::view::refused : subscription.state;
}

void subscriptions::set_state(entry& subscription, listener::view state) {
  subscription.state = state;
  for (auto& who : subscription.listeners) who.view_ = seen(subscription);
}

}  // namespace latchkey::detail
