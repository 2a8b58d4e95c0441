#include <machine/context.hpp>
#include <machine/home.hpp>
#include <machine/waiters.hpp>
#include <wire/cluster.hpp>

#include <algorithm>
#include <bit>
#include <string>

namespace latchkey::detail {

namespace {

constexpr std::size_t most_spare_waiters = 16;

}  // namespace

context::context(config const& given)
    : settings(given), observed(static_cast<bool>(given.on_event)), spare_waiters(most_spare_waiters) {}

context::~context() = default;

std::int64_t context::random(std::int64_t low, std::int64_t high) {
  random_state += 0x9E3779B97F4A7C15u;
  std::uint64_t z = random_state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  if (high <= low) return low;
  return low + static_cast<std::int64_t>(z % static_cast<std::uint64_t>(high - low + 1));
}

instant context::trusted_end(instant sent, milliseconds lease) const {
  return after(sent, lease - settings.clock_margin);
}

milliseconds context::pause(unsigned n, milliseconds most) {
  unsigned const doublings = std::min(n == 0 ? 0 : n - 1, 5u);
  std::int64_t const full = std::max<std::int64_t>(most.count() * (1 << doublings) / 32, 1);
  return milliseconds(random(std::max<std::int64_t>(full / 2, 1), full));
}

void context::note(event_type type, std::string_view lock, std::uint64_t owner, error_code error, std::string_view text,
                   nanoseconds took, std::string_view kind, std::uint64_t about) {
  if (observed) out->notes.push_back({type, std::string(lock), owner, error, without_secret(text), took, kind, about});
}

namespace {

// As servers repeat the words of a command.
bool stands_in_quotes(std::string_view text, std::size_t from, std::size_t size) {
  if (from == 0 || from + size == text.size() || text[from - 1] != text[from + size]) return false;
  return std::string_view("'`\"").find(text[from - 1]) != std::string_view::npos;
}

}  // namespace

std::string context::without_secret(std::string_view text) const {
  std::string made(text);
  if (secret.empty()) return made;
  constexpr std::string_view instead = "***";
  // A short one may be a word of any sentence, which would tell it by what is missing there.
  bool const anywhere = secret.size() >= 8;
  for (auto found = made.find(secret); found != made.npos; found = made.find(secret, found)) {
    bool const hidden = anywhere || stands_in_quotes(made, found, secret.size());
    if (hidden) made.replace(found, secret.size(), instead);
    found += hidden ? instead.size() : secret.size();
  }
  return made;
}

bool context::goes_on(operation& call, home const& whose) const {
  if (whose.to_be_succeeded && (now - call.started) / (call.attempts + 1) < to_nanoseconds(settings.timeout))
    return true;
  return ++call.attempts <= static_cast<unsigned>(settings.retry_attempts);
}

void context::complete(operation& call) {
  if (!call.text.empty()) call.text = without_secret(call.text);
  out->completed.push_back(&call);
  --under_way;
}

void context::explain(operation& call, home const& whose) const {
  if (!call.error) return;
  hindrance const& away = whose.away;
  std::string const silent = whose.address.empty() ? "" : whose.address + ": connected, and has not answered";
  std::string const& words = away.words.empty() ? silent : away.words;
  if (call.what == operation::type::connect) {  // it leaves nothing, and says what it heard last
    if (call.error != errc::timeout && call.error != errc::connection_lost) return;
    if (call.text.empty()) call.text = words;
    if (away.why) call.error = away.why;
    return;
  }
  bool const nothing_left = !call.unseen && !call.goes_on();
  if (call.error == errc::timeout && nothing_left && whose.unserved) {
    call.error = errc::no_master;
    if (call.text.empty()) call.text = "slot " + std::to_string(slot_of(call.name)) + " has no node";
  }
  bool const unreached = call.error == errc::timeout && nothing_left && !call.waited && !counters.connected;
  if (unreached) call.error = away.lasts ? away.why : error_code(errc::connect_failed);
  if (call.unseen && call.what != operation::type::release && !may_still_be_held(call.error)) {
    if (call.text.empty()) call.text = call.error.message();
    call.error = errc::connection_lost;
  }
  bool const unanswered = unreached || call.error == errc::timeout || call.error == errc::connect_failed ||
                          call.error == errc::connection_lost;
  if (!unanswered) return;
  if (call.text.empty()) call.text = whose.refusal;
  if (call.text.empty() || away.words.ends_with(call.text))
    call.text = words;
  else if (!away.words.empty())
    call.text = words + "; before that: " + call.text;
}

kind_stats& context::tally(std::string_view kind) {
  auto const found =
      std::find_if(by_kind.begin(), by_kind.end(), [&](auto const& entry) { return entry.kind == kind; });
  if (found != by_kind.end()) return *found;
  by_kind.push_back({kind});
  return by_kind.back();
}

void count(histogram& times, nanoseconds took) {
  auto const us = static_cast<std::uint64_t>(std::max<nanoseconds::rep>(took.count(), 0) / 1000);
  times.sum += us;
  ++times.buckets[std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(us)), histogram::size - 1)];
}

}  // namespace latchkey::detail
