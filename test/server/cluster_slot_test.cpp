#include <support/catch.hpp>
#include <support/redis_cluster.hpp>
#include <wire/cluster.hpp>

#include <random>
#include <string>
#include <vector>

using namespace latchkey::detail;
using namespace latchkey::test;

TEST_CASE("slots are those that the server computes", "[server][cluster]") {
  redis_server server(cluster_node());
  auto admin = server.admin();
  std::vector<std::string> names{"",     "foo",           "{eu}:orders", "a{b", "a}b",
                                 "x{}y", "foo{{bar}}zap", "foo{}{bar}",  "{",   "}{a}"};
  std::mt19937 chance(1);
  // Few letters, so that braces meet in every order; and all bytes.
  for (int i = 0; i < 2'000; ++i) {
    std::string name;
    for (auto length = chance() % 12; name.size() < length;)
      name += i % 2 == 0 ? "{}ab"[chance() % 4] : static_cast<char>(chance() % 256);
    names.push_back(std::move(name));
  }
  for (auto const& name : names) {
    INFO("\"" << name << "\"");
    REQUIRE(slot_of(name) == admin.integer("CLUSTER", "KEYSLOT", name));
  }
}
