// The release of a joint lock, by members whose answers come when the test says so.
#include <engine/core.hpp>
#include <joint/joint_task.hpp>
#include <support/catch.hpp>

#include <boost/asio/io_context.hpp>

#include <memory>
#include <utility>
#include <vector>

using namespace latchkey;
using namespace latchkey::detail;
using namespace std::chrono_literals;

namespace {

struct slow_member final : lock_key {
  explicit slow_member(std::shared_ptr<core> client) : lock_key(std::move(client), "slow", nullptr, 0) {}

  void start(call& call) const override { asked.push_back(&call); }
  void run(blocking_call&, std::stop_token const&) const override {}
  void cancel(call&) const override {}
  instant expire(call&) const override { return never; }
  void drop(std::uint64_t, hold_id) const override {}
  void renew_no_longer(std::uint64_t, hold_id) const override {}
  bool keeps_out(std::uint64_t) const override { return false; }
  std::string_view refuses(operation::type, query) const override { return {}; }
  nanoseconds drift(milliseconds) const override { return 0ns; }
  bool forked() const override { return false; }
  bool inside() const override { return false; }
  instant budget_end(instant start) const override { return start + 1min; }
  milliseconds watchdog_time() const override { return 30s; }

  mutable std::vector<call*> asked;
};

struct told_call final : call {
  void complete() noexcept override { done = true; }
  bool done = false;
};

}  // namespace

TEST_CASE("joint release: the answers of a member that stands there twice come in any order", "[server][multi]") {
  bool const others = GENERATE(false, true);  // does the owner hold it a third time?
  std::size_t const first = GENERATE(0u, 1u);
  asio::io_context io;
  auto const engine = core::make(io.get_executor(), "redis://127.0.0.1:1", {});
  auto const member = std::make_shared<slow_member>(engine);
  auto const twice = std::make_shared<joint_lock>(engine, "twice", std::vector<joint_lock::member>(2, member), false);
  std::vector<std::shared_ptr<member_hold>> parts;
  for (hold_id id = 1; id <= 2; ++id) {
    parts.push_back(std::make_shared<member_hold>(twice, member, 7, 0ns));
    parts.back()->granted(id);
  }
  told_call waits;
  waits.what = operation::type::release;
  waits.owner = 7;
  auto const about = std::make_shared<joint_hold>(twice, joint_hold::terms{.owner = 7, .id = 3});
  std::make_shared<joint_gathering>(twice, waits, false, about, std::exchange(parts, {}))->begin();
  REQUIRE(member->asked.size() == 2);
  // The answer to the first release, and to the second, which leaves the lock.
  member->asked[0]->released = release_result::still_held;
  member->asked[1]->released = others ? release_result::still_held : release_result::released;
  member->asked[first]->complete();
  CHECK_FALSE(waits.done);
  member->asked[1 - first]->complete();
  CHECK(waits.done);
  CHECK(waits.released == (others ? release_result::still_held : release_result::released));
  engine->close();
  io.run();
}
