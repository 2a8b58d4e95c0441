// A lease in a scope: its end releases, and nobody waits for that.
#include <suite/groups.hpp>
#include <suite/rounds.hpp>

#include <latchkey/latchkey.hpp>

namespace bench {

void run_scope(stage& on) {
  constexpr std::size_t locks = 1'000;
  latchkey::client const client(on.uri());
  auto const one = client.get_lock(new_name("scope"));
  std::vector<latchkey::distributed_lock> many;
  while (many.size() < locks) many.push_back(client.get_lock(new_name("scope")));
  std::size_t at = 0;
  std::vector<side> const sides{blocking_side("lock and unlock",
                                              [&] {
                                                one.lock();
                                                one.unlock();
                                              }),
                                blocking_side("scope, many locks",
                                              [&] {
                                                at = (at + 1) % locks;
                                                static_cast<void>(many[at].acquire());
                                              }),
                                blocking_side("scope, one lock", [&] { static_cast<void>(one.acquire()); })};
  regime const& what = *find_regime("back-to-back");
  for (auto const& each : sides)
    for (int i = 0; i < 4; ++i) each.round(what);
  on.say("back to back");
  auto const found = compare(what, on.rounds(), sides, on.server().pid());
  for (std::size_t const i : {1u, 2u})
    on.add({.name = sides[i].name,
            .unit = "us",
            .figure = found.sides[i].median_p50(),
            .against = "lock() + unlock()",
            .reference = found.sides[0].median_p50(),
            .ratio = found.ratio_p50(i, 0),
            .most = 0.60,
            .note = found.note(i, 0)});
}

}  // namespace bench
