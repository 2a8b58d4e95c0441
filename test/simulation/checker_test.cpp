// Does the simulation see what it looks for? Each invariant with a fault on purpose, of which its checks know nothing.
#include <simulation/traces.hpp>
#include <support/catch.hpp>

#include <string>
#include <vector>

using namespace latchkey;
using namespace latchkey::simulation;

namespace {

using trick = planted_fault::trick;

// Now and then the lock is busy, though it is free.
std::string const in_doubt = "if there == 0 and call('time')[2] % 2 == 0 then return 500 end ";

struct row {
  char const* kind;
  char const* rule;  // as the failure says it
  planted_fault what;
};

simulated_kind const& kind_of(std::string const& name) {
  for (auto const& one : simulated_kinds())
    if (one->name == name) return *one;
  throw std::invalid_argument(name);
}

// The first of so many seeds in which this rule is broken; 0: none.
std::uint64_t seed_that_finds(row const& one, lua_scripts& scripts, std::string& other) {
  constexpr std::uint64_t most = 3'000;
  for (std::uint64_t seed = 1; seed <= most; ++seed) {
    run_options options;
    options.kind = &kind_of(one.kind);
    options.seed = seed;
    options.planted = &one.what;
    auto const end = play(options, scripts);
    if (end.broken && end.broken->find(one.rule) != std::string::npos) return seed;
    if (end.broken) other = *end.broken;
  }
  return 0;
}

void find_all(std::vector<row> const& rows) {
  lua_scripts scripts;
  for (auto const& one : rows) {
    INFO(one.kind << ": " << one.rule);
    std::string other = "nothing";
    auto const seed = seed_that_finds(one, scripts, other);
    INFO("found instead: " << other);
    CHECK(seed > 0);
  }
}

}  // namespace

TEST_CASE("simulation: faults on purpose in any lock are found, each by its rule", "[simulate]") {
  find_all({
      {"lock", "two valid holders", {"acquire", "if there == 0 then", "if there == 0 or true then"}},
      {"lock", "the server has forgotten the hold", {.what = trick::loses_keys}},
      {"lock", "before its owner does", {"acquire", "call('pexpire', key, lease)", "call('pexpire', key, lease / 2)"}},
      {"lock", "the server counts", {"release", "or -7", "or call('hincrby', key, field, 1) and -7"}},
      {"lock", "nobody owns the hold", {"release", "call('del', key)", "0"}},
      {"lock", "nobody is on the way", {.what = trick::keeps_still}},
      {"lock", "though nobody else had it", {"acquire", "if there == 0 then", in_doubt + "if there == 0 then"}},
      {"lock", "which it did not", {.what = trick::always_released}},
      {"lock", "had expired, though it released it", {"release", "or -5", "or -8"}},
      {"lock", "hold", {.what = trick::excuses_nothing}},
      {"lock", "was completed twice", {.what = trick::completes_twice}},
      {"lock", "rest", {.what = trick::never_completes}},
      {"lock", "was told twice that its hold is lost", {.what = trick::tells_loss_twice}},
      {"lock", "was told of the loss of a hold that it had released", {.what = trick::tells_of_released}},
      {"lock", "was not completed exactly once", {.what = trick::forgets_a_call}},
      {"lock", "an owner state, a queue entry or a listener of", {.what = trick::leaves_a_record}},
      {"lock", "the direct lane was lent twice", {.what = trick::lends_twice}},
      {"lock", "writes to a connection that it has closed", {.what = trick::writes_on}},
      {"lock", "is left", {.what = trick::leaves_a_key}},
      {"lock", "it does not sleep", {.what = trick::chatters}},
      {"lock", "though it had time until", {.what = trick::sleeps_late}},
      {"multi", "should be over", {.what = trick::sleeps_late}},
      {"lock", "makes too many connections", {.what = trick::hurries}},
      {"lock", "holds, and it has", {.what = trick::shows_on}},
      {"lock", "has ended what a lease shows", {.what = trick::unlocks_leases}},
      {"lock", "while others wait", {.what = trick::never_lets_go}},
      {"non_reentrant", "two valid holders", {"acquire", "if there == 0 then", "if there == 0 or true then"}},
      {"spin", "nobody owns the hold", {"release", "call('del', key)", "0"}},
      {"plain", "has forgotten the hold", {"acquire", "if holder == value then", "if true then"}},
      {"plain", "nobody owns the hold", {"release", "call('del', key)", "0"}},
      {"fenced", "a token that is not above", {"acquire", "local step = '1'", "local step = '0'"}},
  });
}

TEST_CASE("simulation: faults on purpose in locks with readers or a queue are found", "[simulate]") {
  find_all({
      {"read_write", "two valid holders", {"acquire", "open = writes == 1", "open = true"}},
      {"read_write",
       "before its owner does",
       {"acquire", "stamps .. target, '1', 'px', lease", "stamps .. target, '1', 'px', lease / 2"}},
      {"read_write", "nobody is on the way", {.what = trick::keeps_still}},
      {"fair", "was granted", {"acquire", "(not head or head == field)", "true"}},
      {"fair",
       "has lost its place",
       {"acquire", "redis.pcall('rpush', queue, field)", "redis.pcall('lpush', queue, field)"}},
      {"fair",
       "stands in the queue",
       {"leave", "call('zrem', scores, field)\n    if gone[field] then\n      call('lrem', queue, 0, field)",
        "if gone[field] then"}},
      {"fair", "two valid holders", {"acquire", "left == -2 and", ""}},
  });
}

TEST_CASE("simulation: faults on purpose in what is counted are found", "[simulate]") {
  find_all({
      {"semaphore", "which should be", {"acquire", "call('decrby', key, n)", "call('decrby', key, n + 1)"}},
      {"semaphore", "there are no permits, though there were", {"acquire", "others < wanted", "others <= wanted"}},
      {"semaphore", "nobody is on the way", {.what = trick::keeps_still}},
      {"permit_semaphore", "and more are trusted", {"acquire", "free and free >= 1", "free"}},
      {"permit_semaphore", "which should be", {"acquire", "call('decrby', key, 1)", "call('decrby', key, 2)"}},
      {"permit_semaphore", "before its owner does", {"acquire", "now + 1 + lease", "now + 1 + lease / 2"}},
      {"permit_semaphore", "will forget the hold", {"acquire", "and never or", "and text(now + 3000) or"}},
      {"permit_semaphore",
       "that there is no permit of",
       {"update", "if not there then return {0, 1}", "if there then return {0, 1}"}},
      {"permit_semaphore", "nobody owns the hold", {"release", "call('zrem', timeouts, id)", "1"}},
      {"count_down_latch", "which should be", {"count_down", "'decr'", "'incr'"}},
      {"count_down_latch", "was let go, though", {"wait", "tonumber(value) > 0 and tonumber(hint) or -3", "-3"}},
      {"count_down_latch",
       "though the latch was open",
       {"wait", "if not value then return -3", "if not value then return 5000"}},
      {"count_down_latch", "that there is a count already", {"try_set", "if there == 1 then", "if true then"}},
      {"count_down_latch",
       "the count, which it did not",
       {"try_set", "== 1 then return {0, 1}", "== 1 then return {1, 1}"}},
  });
}

TEST_CASE("simulation: faults on purpose in locks of several members are found", "[simulate]") {
  find_all({
      {"multi", "two valid holders", {"acquire", "if there == 0 then", "if there == 0 or true then"}},
      {"multi", "a part of what it was asked for", {"acquire_all", "if not clear then return answer end", ""}},
      {"multi", "of 3 members", {.what = trick::minority}},
      {"multi", "is over, and keeps", {.what = trick::keeps_members}},
      {"multi", "though no member said so", {.what = trick::hides_errors}},
      {"multi", "while it holds", {.what = trick::keeps_members}},
      {"multi", "is trusted for longer than its members last", {.what = trick::trusts_the_longest}},
      {"multi", "nobody is on the way", {.what = trick::keeps_still}},
      {"red", "two valid holders", {"acquire", "if there == 0 then", "if there == 0 or true then"}},
      {"red", "is trusted with 1 of 3 members", {.what = trick::minority}},
      {"red", "though no member said so", {.what = trick::hides_errors}},
      {"red", "is over, and keeps", {.what = trick::keeps_members}},
      {"red", "is trusted for longer than its members last", {.what = trick::trusts_the_longest}},
  });
}
