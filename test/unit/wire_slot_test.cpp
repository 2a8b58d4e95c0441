#include <support/catch.hpp>
#include <support/unit/wire_words.hpp>
#include <wire/cluster.hpp>
#include <wire/kinds.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace latchkey::detail;
using namespace latchkey::test;

namespace {

std::vector<kind const*> kinds_with_channel() {
  return {&reentrant_kind(),  &non_reentrant_kind(), &fenced_kind(),    &plain_kind(),
          &read_write_kind(), &fair_kind(),          &semaphore_kind(), &permit_semaphore_kind()};
}

// Of all that a kind sends about a lock of this name.
std::set<std::string> all_keys(kind const& of, std::string_view name) {
  std::set<std::string> keys;
  for (auto const what : {ask::acquire, ask::release, ask::hand_off, ask::renew, ask::extend, ask::force_unlock,
                          ask::leave, ask::command}) {
    item one = everything(what);
    one.name = name;
    for (auto const& key : keys_of(of, one)) keys.insert(key);
  }
  return keys;
}

bool all_in_one_slot(std::set<std::string> const& keys) {
  std::set<std::string_view> parts;
  for (auto const& key : keys) parts.insert(hashed_part(key));
  return parts.size() == 1;
}

}  // namespace

TEST_CASE("a slot is the CRC16 of the key, as the Redis Cluster specification has it", "[unit][wire]") {
  auto const [key, slot] = GENERATE(table<std::string, int>({
      {"", 0},
      {"123456789", 0x31C3},
      {"foo", 12182},
      {"bar", 5061},
      {"hello", 866},
      {"somekey", 11058},
      {"foo{hash_tag}", 2515},
      {"bar{hash_tag}", 2515},
      {"hash_tag", 2515},
      {std::string("\0", 1), 0},
      {"\xff\xfe", 3374},
  }));
  INFO(key);
  CHECK(slot_of(key) == slot);
}

TEST_CASE("what is hashed is the first tag that is not empty at once", "[unit][wire]") {
  auto const [key, part] = GENERATE(table<std::string, std::string>({
      {"user", "user"},
      {"{user1000}.following", "user1000"},
      {"foo{}{bar}", "foo{}{bar}"},
      {"foo{{bar}}zap", "{bar"},
      {"foo{bar}{zap}", "bar"},
      {"a{b", "a{b"},
      {"a}b", "a}b"},
      {"}{a}", "a"},
      {"x{}y", "x{}y"},
      {"{", "{"},
      {"{}", "{}"},
      {"{a", "{a"},
      {"", ""},
  }));
  INFO(key);
  CHECK(hashed_part(key) == part);
}

TEST_CASE("a name stands in one slot with all that is derived from it, or is told", "[unit][wire]") {
  auto const [name, together] = GENERATE(table<std::string, bool>({
      {"orders", true},
      {"{eu}:orders", true},
      {"orders:{eu}", true},
      {"}{eu}", true},
      {"{eu}}", true},
      {"{eu}{us}", true},
      {"a{{b}}", true},
      {"a{b", false},
      {"{b", false},
      {"a}b", false},
      {"}", false},
      {"x{}y", false},
      {"x{}{y}", false},
  }));
  INFO(name);
  for (auto const* one : kinds_with_channel()) {
    INFO(one->rules().name);
    auto const channel = one->channel(name, {});
    CHECK(one->in_one_slot(name) == together);
    CHECK((hashed_part(channel) == hashed_part(name)) == together);
    if (together) {
      CHECK(all_in_one_slot(all_keys(*one, name)));
      CHECK(slot_of(one->channel(name, "id:1")) == slot_of(name));
    }
  }
  CHECK(spin_kind().in_one_slot(name));
  CHECK(all_in_one_slot(all_keys(spin_kind(), name)));
}

// Redisson writes the name of its channel with braces in any case, and the first two count.
TEST_CASE("a latch stands in one slot only if its name has no brace at all", "[unit][wire]") {
  auto const& latch = count_down_latch_kind();
  CHECK(latch.in_one_slot("go"));
  for (std::string_view const name : {"{eu}:go", "go:{eu}", "a{b", "a}b", "x{}y"}) {
    INFO(name);
    CHECK_FALSE(latch.in_one_slot(name));
  }
}

TEST_CASE("redirections are read, and nothing else is", "[unit][wire]") {
  auto const moved = read_redirection("MOVED 3999 127.0.0.1:6381");
  REQUIRE(moved);
  CHECK_FALSE(moved->once);
  CHECK(moved->slot == 3999);
  CHECK(moved->to == node_address{"127.0.0.1", 6381});
  auto const ask = read_redirection("ASK 0 ::1:7000");
  REQUIRE(ask);
  CHECK(ask->once);
  CHECK(ask->to == node_address{"::1", 7000});
  CHECK(read_redirection("MOVED 1 :7000")->to == node_address{"", 7000});
  for (auto const* odd : {"MOVED", "MOVED 3999", "MOVED x 127.0.0.1:1", "MOVED 16384 a:1", "MOVED 1 a:0", "MOVED 1 a",
                          "MOVED 1 a:b", "ERR MOVED 1 a:1", "ASKING", ""})
    CHECK_FALSE(read_redirection(odd));
}

TEST_CASE("nodes of a cluster: masters that can be reached, with their slots and epochs", "[unit][wire]") {
  auto const [all, named] = read_cluster(
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
