#include <machine/subscriptions.hpp>

#include <machine/context.hpp>

#include <algorithm>

namespace latchkey::detail {

void subscriptions::want(std::string const& channel, listener& who) {
  entry& one = channels_[channel];
  one.listeners.push_back(who);
  shared_.counters.subscriptions = channels_.size();
  shared_.out->turn = true;  // the connection may have to be opened first
  if (refused_) {
    who.view_ = listener::view::refused;
    return;
  }
  if (one.state == listener::view::off) {
    one.state = listener::view::asked;
    if (up_) unsent_.push_back({true, channel});
  }
  who.view_ = one.state;
}

void subscriptions::drop(std::string const& channel, listener& who) {
  who.view_ = listener::view::off;
  auto found = channels_.find(channel);
  if (found == channels_.end() || !who.is_linked()) return;
  entry& one = found->second;
  one.listeners.erase(one.listeners.iterator_to(who));
  if (!one.listeners.empty()) return;
  if (up_ && one.state != listener::view::off && !refused_) {
    unsent_.push_back({false, channel});
    shared_.out->turn = true;
  }
  // From here on it counts as not subscribed, whatever still arrives.
  channels_.erase(found);
  shared_.counters.subscriptions = channels_.size();
}

void subscriptions::connected() {
  up_ = true;
  refused_ = false;
  shared_.counters.messages_refused = false;
  unsent_.clear();
  asked_.clear();
  unconfirmed_.clear();
  for (auto& [channel, one] : channels_) {
    set_view(one, listener::view::asked);
    unsent_.push_back({true, channel});
  }
}

void subscriptions::disconnected() {
  up_ = false;
  unsent_.clear();
  asked_.clear();
  unconfirmed_.clear();
  for (auto& [channel, one] : channels_) {
    if (!refused_) set_view(one, listener::view::asked);
  }
}

std::vector<subscriptions::command> subscriptions::take_unsent() {
  for (auto const& one : unsent_) {
    if (!one.subscribe) continue;
    asked_.push_back(one.channel);
    ++unconfirmed_[one.channel];
  }
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
  entry& one = found->second;
  if (!last || one.state == listener::view::on) return;
  set_view(one, listener::view::on);
  for (auto it = one.listeners.begin(); it != one.listeners.end();) (it++)->on_confirmed();
}

// Waiting falls back to polling, for all channels: a server that refuses one lets few others pass, and the
// next connection asks again.
void subscriptions::refused_by_server(std::string_view text) {
  if (asked_.empty()) return;
  answered();
  if (!refused_) shared_.note(event_type::subscribe_refused, {}, 0, errc::server_error, text);
  refused_ = true;
  shared_.counters.messages_refused = true;
  std::vector<listener*> all;
  for (auto& [channel, one] : channels_) {
    set_view(one, listener::view::refused);
    for (auto& who : one.listeners) all.push_back(&who);
  }
  for (listener* who : all) who->on_refused();
}

void subscriptions::message(std::string_view channel, std::string_view payload) {
  auto found = channels_.find(std::string(channel));
  if (found == channels_.end()) return;
  auto& listeners = found->second.listeners;
  for (auto it = listeners.begin(); it != listeners.end();) (it++)->on_message(payload);
}

void subscriptions::set_view(entry& one, listener::view state) {
  one.state = state;
  for (auto& who : one.listeners) who.view_ = state;
}

}  // namespace latchkey::detail
