#include <support/kinds.hpp>
#include <torture/kinds.hpp>

#include <algorithm>

namespace latchkey::torture {

namespace {

std::vector<torture_kind> make_kinds() {
  std::vector<torture_kind> all;
  for (auto const& one : test::exclusive_kinds()) {
    if (one.name == "write_lock") continue;  // below, with its readers
    torture_kind made;
    made.name = one.name;
    made.tokens = one.numbered;
    made.reenters = one.reenters && one.servers == 1;
    made.servers = one.servers > 1 ? red_servers : 1;
    made.make = [make = one.make](auto const& clients, auto const& name, bool) { return make(clients, name); };
    all.push_back(std::move(made));
  }
  torture_kind sides;
  sides.name = "read_write_lock";
  sides.who = rule::readers_writer;
  sides.reenters = true;
  sides.make = [](auto const& clients, auto const& name, bool shared) {
    auto const both = clients[0].get_read_write_lock(name);
    return shared ? both.read_lock() : both.write_lock();
  };
  all.push_back(std::move(sides));
  torture_kind with_ids;
  with_ids.name = "permit_semaphore";
  with_ids.who = rule::permits;
  all.push_back(with_ids);
  torture_kind plain_permits;
  plain_permits.name = "semaphore";
  plain_permits.who = rule::permits;
  plain_permits.leased = false;
  all.push_back(plain_permits);
  torture_kind latch;
  latch.name = "latch";
  latch.who = rule::rounds;
  latch.leased = false;
  all.push_back(latch);
  return all;
}

}  // namespace

std::vector<torture_kind> const& torture_kinds() {
  static auto const all = make_kinds();
  return all;
}

std::string lock_name(std::uint8_t kind, std::uint32_t lock) {
  return torture_kinds()[kind].name + "-" + std::to_string(lock);
}

}  // namespace latchkey::torture
