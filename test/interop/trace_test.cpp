// What Redisson sends today is what the recordings show, which the tests without a JVM believe.
// With LATCHKEY_INTEROP_RECORD set, as record-traces does, it writes them instead.
#include <interop/support/history.hpp>
#include <interop/support/trace.hpp>
#include <support/catch.hpp>

#include <cstdlib>

using namespace latchkey::test;

namespace {

std::vector<redis_server*> pointers(std::vector<std::unique_ptr<redis_server>> const& servers) {
  std::vector<redis_server*> result;
  for (auto const& one : servers) result.push_back(one.get());
  return result;
}

}  // namespace

TEST_CASE("Redisson sends what the recordings show", "[interop]") {
  interop_world world(unrenewed);
  auto const redisson = redisson_peer(unrenewed, world.uris());
  auto const ours = latchkey_peer(unrenewed, world.uris());
  auto const servers = pointers(world.servers);
  for (auto const& what : histories()) {
    auto const by_redisson = traced(what, *world.redisson, *redisson, servers);
    if (std::getenv("LATCHKEY_INTEROP_RECORD") != nullptr) {
      write_trace(what, {by_redisson, traced(what, *world.ours, *ours, servers)});
      continue;
    }
    auto const recorded = read_trace(what).redisson;
    for (std::size_t i = 0; i < what.steps.size(); ++i) {
      INFO(what.kind << what.title << ", step " << i + 1 << ": " << what.steps[i]);
      CHECK(difference(by_redisson[i].state, recorded[i].state) == "");
      CHECK(by_redisson[i].answered == recorded[i].answered);
      if (by_chance(what.steps[i])) continue;
      CHECK(difference(messages_in(by_redisson[i].commands), messages_in(recorded[i].commands)) == "");
    }
  }
}
