#include <machine/scout_rounds.hpp>

#include <algorithm>
#include <utility>

namespace latchkey::detail {

namespace {

constexpr milliseconds without_one{200};  // between rounds while a server is missing
constexpr milliseconds in_vain{1'000};    // between rounds in which nobody knew better

// Of two failures of a round the one that says more: an answer more than none.
int weight(error_code const& why) {
  if (why == errc::no_master) return 3;
  if (!why) return 0;
  return why == errc::connect_failed ? 1 : 2;
}

}  // namespace

scout_rounds::scout_rounds(context& shared) : shared_(shared) { timer_.what = timer_node::type::scout; }

bool scout_rounds::turn_begins(need wanted) {
  if (wanted == need::press && wanted_ != need::press && !asking_) again_at_ = std::min(again_at_, after(began_, soon));
  wanted_ = wanted;
  if (wanted_ != need::nothing) return !asking_ && shared_.now >= again_at_;
  shared_.timers.drop(timer_);
  if (std::exchange(asking_, false)) again_at_ = shared_.now;
  return false;
}

void scout_rounds::turn_ends(io_actions& io, instant next) {
  io.close.insert(io.close.end(), closing_.begin(), closing_.end());
  closing_.clear();
  if (wanted_ != need::nothing) shared_.timers.set(timer_, std::max(next, shared_.now));
}

void scout_rounds::round_begins() {
  asking_ = true;
  began_ = shared_.now;
  again_at_ = never;
  why_ = {};
  words_.clear();
}

void scout_rounds::round_ends(milliseconds usual) {
  asking_ = false;
  failures_ = 0;
  again_at_ = std::min(again_at_, after(shared_.now, wanted_ == need::press ? without_one : usual));
}

void scout_rounds::round_ends_in_vain() {
  asking_ = false;
  again_at_ = after(shared_.now, shared_.pause(++failures_, in_vain));
  again_at_ = std::max(again_at_, after(began_, soon));
  shared_.out->turn = true;
  bool const lasts = why_ == errc::auth_failed || why_ == errc::tls_failed || why_ == errc::no_master;
  nobody_knows(why_ ? why_ : error_code(errc::connect_failed), std::string(words_), !lasts);
}

void scout_rounds::failed(std::string_view kind, node_address const& at, error_code const& why, std::string_view text) {
  if (weight(why) > weight(why_)) {
    why_ = why;
    words_ = std::string(kind) + ' ' + to_string(at) + ": ";
    words_.append(text);
  }
  ask_next();
}

void scout_rounds::hurry() {
  again_at_ = std::min(again_at_, std::max(shared_.now, after(began_, soon)));
  shared_.out->turn = true;
}

void scout_rounds::say_auth(std::string& out, std::string const& username, std::string const& password) {
  username.empty() ? say(out, "AUTH", password) : say(out, "AUTH", username, password);
}

std::string_view scout_rounds::refusal_of_auth(std::string_view said) {
  return said.find("unknown command") != said.npos ? "it does not know AUTH" : said;
}

void scout_rounds::send(std::uint32_t serial, std::string& out, io_actions& io) {
  if (out.empty()) return;
  shared_.counters.bytes_sent += out.size();
  io.write.push_back({serial, std::exchange(out, {})});
}

}  // namespace latchkey::detail
