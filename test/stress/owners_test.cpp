// Owners of several threads at once.
#include <latchkey/owner.hpp>
#include <support/catch.hpp>

#include <cstddef>
#include <optional>
#include <set>
#include <thread>
#include <unordered_set>
#include <vector>

namespace stress_owners {

using latchkey::owner;

TEST_CASE("owners are never given out twice, over all threads", "[stress]") {
  constexpr std::size_t each = 1'000;
  std::vector<std::vector<owner>> made(8);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : made)
      threads.emplace_back([&mine] {
        for (std::size_t i = 0; i < each; ++i) mine.push_back(owner::make());
      });
  }
  std::unordered_set<owner> all;
  for (auto const& mine : made) all.insert(mine.begin(), mine.end());
  CHECK(all.size() == made.size() * each);
}

TEST_CASE("a thread keeps its owner, and the next thread gets another", "[stress]") {
  CHECK(owner::this_thread() == owner::this_thread());
  std::set<owner> seen{owner::this_thread()};
  for (int i = 0; i < 20; ++i) {
    std::optional<owner> theirs;
    std::jthread([&] { theirs = owner::this_thread(); }).join();
    CHECK(seen.insert(*theirs).second);
  }
}

}  // namespace stress_owners
