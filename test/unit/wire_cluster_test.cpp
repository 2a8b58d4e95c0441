#include <support/catch.hpp>
#include <wire/cluster.hpp>

#include <cstdint>
#include <utility>
#include <vector>

using latchkey::detail::node_address;

TEST_CASE("redirections are read, and nothing else is", "[unit][wire]") {
  auto const moved = latchkey::detail::read_redirection("MOVED 3999 127.0.0.1:6381");
  REQUIRE(moved);
  CHECK_FALSE(moved->once);
  CHECK(moved->slot == 3999);
  CHECK(moved->to == node_address{"127.0.0.1", 6381});
  auto const ask = latchkey::detail::read_redirection("ASK 0 ::1:7000");
  REQUIRE(ask);
  CHECK(ask->once);
  CHECK(ask->to == node_address{"::1", 7000});
  CHECK(latchkey::detail::read_redirection("MOVED 1 :7000")->to == node_address{"", 7000});
  for (auto const* odd : {"MOVED", "MOVED 3999", "MOVED x 127.0.0.1:1", "MOVED 16384 a:1", "MOVED 1 a:0", "MOVED 1 a",
                          "MOVED 1 a:b", "ERR MOVED 1 a:1", "ASKING", ""})
    CHECK_FALSE(latchkey::detail::read_redirection(odd));
}

TEST_CASE("nodes of a cluster: masters that can be reached, with their slots and epochs", "[unit][wire]") {
  auto const [all, named] = latchkey::detail::read_cluster(
      "a 127.0.0.1:7000@17000,db.example myself,master - 0 0 7 connected 0-5460 5462 [5461->-b]\n"
      "b [::1]:7001@17001 master,fail - 0 0 3 connected 5461\r\n"
      "c 127.0.0.1:7002@17002 slave a 0 0 7 connected\n"
      "d :7003@17003,,shard-id=x master - 0 0 9 connected\n"
      "e 127.0.0.1:7004@17004 master,noaddr - 0 0 9 connected 6000\n"
      "f 127.0.0.1:7005@17005 handshake - 0 0 0 connected\n"
      "g nonsense master - 0 0 1 connected 1\n"
      "h 127.0.0.1:7006@17006 master - 0 0 x connected 1\n"
      "short line\n");
  REQUIRE(all.size() == 3);
  CHECK(all[0].at == node_address{"127.0.0.1", 7000});
  CHECK(all[0].name == "db.example");
  CHECK(all[0].epoch == 7);
  CHECK(all[0].slots == std::vector<std::pair<std::uint16_t, std::uint16_t>>{{0, 5460}, {5462, 5462}});
  CHECK(all[0].replicas == 1);
  CHECK_FALSE(all[0].failed);
  CHECK(all[1].failed);
  CHECK(all[2].at == node_address{"", 7003});
  CHECK(all[2].name.empty());
  CHECK(all[2].slots.empty());
  std::string ids, placed;
  for (auto const& node : named) {
    ids += node.id;
    if (node.at.port != 0) placed += node.id;
  }
  CHECK(ids == "abcdefghshort");
  CHECK(placed == "abcdh");
  CHECK(named[1].failed);
}
