#include <base/say.hpp>
#include <look/restarts.hpp>
#include <thread>

namespace latchkey::tool {
namespace {

constexpr std::chrono::seconds longest_restart{15};
constexpr milliseconds between_tries{100};

}  // namespace

restarts::restarts(milliseconds limit) : end_(limit == forever ? clock::time_point::max() : clock::now() + limit) {}

void restarts::away(failure const& why) {
  if (why.code() != unavailable) throw;
  auto const now = clock::now();
  if (!since_) say(why.what() + std::string("; it may restart"));
  since_ = since_.value_or(now);
  if (now - *since_ >= longest_restart || now + between_tries >= end_) throw;
  std::this_thread::sleep_for(between_tries);
}

}  // namespace latchkey::tool
