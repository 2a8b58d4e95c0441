// Without a JVM: latchkey plays the histories that were recorded with Redisson, and is held against the recordings.
#include <interop/support/trace.hpp>
#include <support/catch.hpp>
#include <support/patience.hpp>

#include <cstdlib>

using namespace latchkey::test;

TEST_CASE("latchkey does in each step of a history what was recorded with Redisson", "[server][interop]") {
  std::vector<std::unique_ptr<redis_server>> owned;
  std::vector<redis_server*> servers;
  std::vector<std::string> uris;
  for (int i = 0; i < 3; ++i) {
    owned.push_back(std::make_unique<redis_server>(redis_options{.tcp = true}));
    servers.push_back(owned.back().get());
    uris.push_back(owned.back()->uri());
  }
  auto const a = latchkey_peer(unrenewed, uris);
  auto const b = latchkey_peer(unrenewed, uris);
  for (auto const& what : histories()) {
    auto const recorded = read_trace(what);
    auto const played = traced(what, *a, *b, servers);
    if (std::getenv("LATCHKEY_INTEROP_RECORD") != nullptr) {
      write_trace(what, {recorded.redisson, played});
      continue;
    }
    bool in_time = true;
    for (std::size_t i = 0; i < what.steps.size(); ++i) {
      INFO(what.kind << what.title << ", step " << i + 1 << ": " << what.steps[i]);
      auto const& now = played[i];
      in_time = !late(what, i, now.answered, recorded.redisson[i].answered);
      if (!in_time) break;
      // What Redisson's side can see: answers, the state, messages.
      CHECK(now.answered == recorded.redisson[i].answered);
      CHECK(difference(now.state, recorded.redisson[i].state) == "");
      if (by_chance(what.steps[i]) || other_messages(what.steps[i])) continue;
      CHECK(difference(messages_in(now.commands), messages_in(recorded.redisson[i].commands)) == "");
    }
    if (!in_time) continue;
    // And nothing changed in how latchkey does it without somebody looking at the recording anew.
    INFO(what.kind << what.title);
    auto changes = changes_in(played);
    // A waiter of a fair lock has its time written anew when it looks again, which depends on the time.
    if (what.kind != "fair_lock") CHECK(missing(changes, changes_in(recorded.ours)) == "");
    // One whose look is under way while the lock is released is granted it by that look or the next, and is not handed
    // it. Looks are under way for long where everything is sanitized: there five plays show all that was recorded.
    for (int more = slowness > 1 && what.kind == "fair_lock" ? 4 : 0;
         more > 0 && !missing(changes_in(recorded.ours), changes).empty(); --more)
      for (auto& block : changes_in(traced(what, *a, *b, servers))) changes.push_back(std::move(block));
    CHECK(missing(changes_in(recorded.ours), changes) == "");
  }
}
