// The multi lock: all of its members or none.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/worlds.hpp>

using namespace latchkey;
using namespace latchkey::test;

TEST_CASE("multi lock: it holds every member and gives every member back", "[server][multi]") {
  common_world w;
  std::vector<std::string> const names{new_name(), new_name(), new_name()};
  std::vector<distributed_lock> members;
  for (auto const& name : names) members.push_back(w.own.get_lock(name));
  auto const all = w.own.get_multi_lock(members);
  CHECK(all.name() == names[0] + "," + names[1] + "," + names[2]);
  all.lock();
  for (auto const& name : names)
    CHECK(w.admin.hash(name) == std::map<std::string, std::string>{{w.field(owner::this_thread()), "1"}});
  CHECK(all.is_held_by_current_thread());
  all.unlock();
  for (auto const& name : names) CHECK(w.admin.integer("EXISTS", name) == 0);
}
