#include <algorithm>
#include <base/say.hpp>
#include <look/restarts.hpp>
#include <look/session.hpp>
#include <thread>

namespace latchkey::tool {
namespace {

constexpr std::chrono::seconds longest_restart{15};
constexpr milliseconds first_pause{100}, last_pause{1'000};

// A wait may be longer than the clock goes.
std::chrono::steady_clock::time_point end_of(milliseconds limit) {
  using clock = std::chrono::steady_clock;
  auto const now = clock::now();
  auto const longest = std::chrono::duration_cast<milliseconds>(clock::time_point::max() - now);
  return limit < longest ? now + limit : clock::time_point::max();
}

}  // namespace

restarts::restarts(milliseconds limit) : end_(end_of(limit)), pause_(first_pause) {}

void restarts::back() {
  since_.reset();
  pause_ = first_pause;
}

void restarts::away(failure const& why) {
  bool const passes = dynamic_cast<refused_for_now const*>(&why) != nullptr;
  if (!passes && (!heard_ || why.code() != unavailable)) throw;
  auto const now = clock::now();
  bool const begins = !since_;
  since_ = since_.value_or(now);
  if (now - *since_ >= longest_restart || now >= end_) throw;
  if (begins) say(why.what() + std::string(why.code() == unavailable ? "; it may restart" : "; it is looked for anew"));
  std::this_thread::sleep_until(std::min(now + pause_, end_));
  pause_ = std::min(2 * pause_, last_pause);
}

}  // namespace latchkey::tool
