// The fair lock on a real server.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/worlds.hpp>

#include <boost/asio/use_future.hpp>

#include <future>
#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::test;

namespace {

struct fair_world : common_world {
  distributed_lock fair = own.get_fair_lock(name);

  std::string const queue = "redisson_lock_queue:{" + name + "}";
  std::string const scores = "redisson_lock_timeout:{" + name + "}";
  std::string const channel = "redisson_lock__channel:{" + name + "}";

  std::vector<std::string> line() {
    std::vector<std::string> found;
    for (auto const& one : admin.ok("LRANGE", queue, 0, -1).elements) found.push_back(one.text);
    return found;
  }
};

}  // namespace

TEST_CASE("fair lock: waiters of two clients are served in the order of their arrival", "[server][fair]") {
  fair_world w;
  client other(common_server().uri(), steady_config());
  auto const theirs = other.get_fair_lock(w.name);
  lease held = w.fair.acquire();
  std::vector<std::future<lease>> waiting;
  std::vector<std::string> fields;
  for (int i = 0; i < 6; ++i) {
    auto const who = owner::make();
    waiting.push_back((i % 2 ? theirs : w.fair).async_acquire({.owner = who}, asio::use_future));
    fields.push_back((i % 2 ? other.id() : w.own.id()) + ":" + to_string(who));
    REQUIRE(wait_until([&] { return w.line().size() == waiting.size(); }));
  }
  CHECK(w.line() == fields);
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    CHECK(held.release() == release_result::released);
    held = value_of(std::move(waiting[i]));
    CHECK(held.held());
    CHECK(w.line().size() == waiting.size() - i - 1);
  }
  CHECK(held.release() == release_result::released);
  CHECK(w.admin.integer("EXISTS", w.name, w.queue, w.scores) == 0);
}
