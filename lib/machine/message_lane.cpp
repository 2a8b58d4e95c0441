#include <machine/message_lane.hpp>

#include <machine/scout_rounds.hpp>
#include <wire/cluster.hpp>

namespace latchkey::detail {

namespace {

std::string_view subscribe_word(bool sharded, bool begins) {
  if (sharded) return begins ? "SSUBSCRIBE" : "SUNSUBSCRIBE";
  return begins ? "SUBSCRIBE" : "UNSUBSCRIBE";
}

}  // namespace

bool followed_slots::may_follow(std::uint16_t slot, instant now) {
  if (now >= forgotten_at_) {
    lately_.clear();
    forgotten_at_ = after(now, scout_rounds::soon);
  }
  return lately_.insert(slot).second;
}

void message_lane::send() {
  if (!at_.channels.pending()) return;
  link& lane = links_.of(role::messages);
  for (auto const& command : at_.channels.take_unsent()) {
    command_.say(subscribe_word(at_.sharded_channels, command.subscribe), command.channel);
    say_of_channel(lane, command.subscribe ? sent_call::type::subscribe : sent_call::type::unsubscribe);
  }
}

// The end of a sharded channel is also told by the server itself, and then says nothing of what was asked.
void message_lane::say_of_channel(link& lane, sent_call::type what) {
  if (at_.sharded_channels && what == sent_call::type::unsubscribe)
    lane.tell(shared_, command_);
  else
    lane.write(shared_, command_, {.what = what});
}

// To SSUBSCRIBE, or to a SUNSUBSCRIBE, of which nothing has to be known: only the slot tells which.
void message_lane::on_channel_elsewhere(link& link, redirection const& to) {
  if (link.unanswered.empty()) return;
  auto const what = link.unanswered.front().what;
  bool const asked = what == sent_call::type::may_subscribe;
  if (what != sent_call::type::subscribe && !asked) return;
  std::string const channel = asked ? own_channel() : at_.channels.oldest_asked();
  if (slot_of(channel) != to.slot) return;
  link.unanswered.pop_front();
  if (asked) return on_may_subscribe({});
  at_.channels.put_off();
  followed_.may_follow(to.slot, shared_.now) ? void(user_.redirected(to)) : user_.shaken();
}

void message_lane::answered(link& link, reply& answer) {
  if (answer.is_error()) {
    if (auto const to = at_.sharded_channels ? read_redirection(answer.text) : std::nullopt)
      return on_channel_elsewhere(link, *to);
    using asked = sent_call::type;
    asked const what = link.unanswered.empty() ? asked::subscribe : link.unanswered.front().what;
    bool const pinged = what == asked::ping;
    if (pinged) link.polled = false;
    if (what == asked::may_subscribe) {
      link.unanswered.pop_front();
      return on_may_subscribe(answer.text);
    }
    // A server that is busy for a while has done neither a SUBSCRIBE nor an UNSUBSCRIBE: the next connection asks for
    // what is wanted by then. One that will not UNSUBSCRIBE would go on to send what nobody wants.
    auto const why = classify(answer.text);
    bool const busy = !pinged && why.executed == server_error::ran::no && why.transient;
    if (busy || what == asked::unsubscribe) return links_.discard(link, why.code, answer.text);
    if (!link.unanswered.empty()) link.unanswered.pop_front();
    return what == asked::subscribe ? at_.channels.refused_by_server(answer.text) : void();
  }
  link.of_use = true;
  if (answer.kind == reply::type::status) {  // PONG while nothing is subscribed
    link.polled = false;
    if (!link.unanswered.empty()) link.unanswered.pop_front();
    return;
  }
  if (!answer.is_array() || answer.elements.size() < 2)
    return links_.discard(link, errc::protocol_error, "not a message");
  auto const& words = answer.elements;
  std::string_view what = words[0].text;
  if (at_.sharded_channels && what.starts_with('s') && what != "subscribe")
    what.remove_prefix(1);  // smessage, ssubscribe
  if (what == "message" && words.size() == 3) return at_.channels.message(words[1].text, words[2].text);
  if (what != "subscribe" && what != "unsubscribe" && what != "pong") return;
  if (at_.sharded_channels && what == "unsubscribe") {
    // If it was not asked for that, the slot has another node, or this one is no master any more.
    if (at_.channels.ended_by_server(words[1].text)) user_.misled();
    return;
  }
  bool const ours = !link.unanswered.empty() && link.unanswered.front().what == sent_call::type::may_subscribe;
  if (!link.unanswered.empty()) link.unanswered.pop_front();
  if (ours) return on_may_subscribe({});
  if (what == "pong") link.polled = false;
  if (what == "subscribe") at_.channels.confirmed(words[1].text);
}

void message_lane::ask(link& link) {
  asked_ = true;
  std::string const channel = own_channel();
  for (bool const begins : {true, false}) {
    command_.say(subscribe_word(at_.sharded_channels, begins), channel);
    say_of_channel(link, begins ? sent_call::type::may_subscribe : sent_call::type::unsubscribe);
  }
}

// Only this one channel refused says nothing: the channels that will be used may be allowed.
void message_lane::on_may_subscribe(std::string_view refused) {
  asked_ = false;
  if (refused.find("to run the") != refused.npos)
    shared_.note(event_type::subscribe_refused, {}, 0, errc::server_error, refused);
}

}  // namespace latchkey::detail
