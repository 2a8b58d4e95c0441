#include <joint/join.hpp>
#include <joint/joint_lock.hpp>

#include <algorithm>

namespace latchkey::detail {

namespace {

using key_ptr = std::shared_ptr<lock_key const>;

constexpr std::size_t most_members = 256;  // those of members counted

void add_leaves(key_ptr const& key, std::vector<key_ptr>& leaves) {
  if (key->which) return leaves.push_back(key);
  for (auto const& member : static_cast<joint_lock const&>(*key).members()) add_leaves(member, leaves);
}

void check(std::vector<key_ptr> const& members, bool majority) {
  if (members.empty()) throw lock_error(errc::bad_argument, "a lock without members");
  std::vector<key_ptr> leaves;
  std::vector<std::size_t> ends;
  for (auto const& key : members) {
    if (!key) throw lock_error(errc::bad_argument, "a member was moved from");
    add_leaves(key, leaves);
    ends.push_back(leaves.size());
    if (leaves.size() > most_members) throw lock_error(errc::bad_argument, "more than 256 members");
  }
  if (!majority) return;
  // One server would have more than one vote.
  for (std::size_t i = 0, begin = 0; i < members.size(); begin = ends[i++])
    for (std::size_t mine = begin; mine < ends[i]; ++mine)
      for (std::size_t other = ends[i]; other < leaves.size(); ++other)
        if (leaves[mine]->same_as(*leaves[other]))
          throw lock_error(errc::bad_argument, "a red lock must not have the same member twice");
}

// Equal for equal locks of one client.
std::string identity_of(std::vector<key_ptr> const& members, bool majority) {
  std::string made = majority ? "red" : "multi";
  auto const add = [&](auto const& value) { made.append("|").append(value); };
  auto const address = [](void const* of) { return std::to_string(reinterpret_cast<std::uintptr_t>(of)); };
  for (auto const& key : members) {
    add(address(key->engine.get()));
    add(key->which ? key->which->rules().name : address(key.get()));
    auto const parameters = key->which ? key->which->rules().parameters : std::string();
    add(std::to_string(parameters.size()));
    add(parameters);
    add(std::to_string(key->mode));
    add(std::to_string(key->name.size()));
    add(key->name);
  }
  return made;
}

}  // namespace

std::shared_ptr<lock_key const> join(std::shared_ptr<core> const& engine, std::vector<key_ptr> members, bool majority) {
  check(members, majority);
  std::string name;
  for (auto const& key : members) name += (name.empty() ? "" : ",") + key->name;
  return std::static_pointer_cast<joint_lock const>(engine->attached(identity_of(members, majority), [&] {
    return std::make_shared<joint_lock>(engine, std::move(name), std::move(members), majority);
  }));
}

}  // namespace latchkey::detail
