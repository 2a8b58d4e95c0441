#include <api/calls.hpp>
#include <api/lock_key.hpp>
#include <joint/joint_lock.hpp>
#include <latchkey/client.hpp>

#include <algorithm>

namespace latchkey {

namespace {

using detail::lock_key;
using key_ptr = std::shared_ptr<lock_key const>;

constexpr std::size_t most_members = 256;  // those of members counted

void add_leaves(key_ptr const& one, std::vector<key_ptr>& leaves) {
  if (!one->joint) return leaves.push_back(one);
  for (auto const& member : one->joint->members()) add_leaves(member, leaves);
}

bool same_lock(lock_key const& a, lock_key const& b) {
  return a.engine == b.engine && a.name == b.name && a.which == b.which && a.mode == b.mode && a.joint == b.joint;
}

void check(std::vector<key_ptr> const& members, bool majority) {
  if (members.empty()) throw lock_error(errc::bad_argument, "a lock without members");
  std::vector<key_ptr> leaves;
  std::vector<std::size_t> ends;
  for (auto const& one : members) {
    if (!one) throw lock_error(errc::bad_argument, "a member was moved from");
    add_leaves(one, leaves);
    ends.push_back(leaves.size());
    if (leaves.size() > most_members) throw lock_error(errc::bad_argument, "more than 256 members");
  }
  if (!majority) return;
  // One server would have more than one vote.
  for (std::size_t i = 0, begin = 0; i < members.size(); begin = ends[i++])
    for (std::size_t mine = begin; mine < ends[i]; ++mine)
      for (std::size_t other = ends[i]; other < leaves.size(); ++other)
        if (same_lock(*leaves[mine], *leaves[other]))
          throw lock_error(errc::bad_argument, "a red lock must not have the same member twice");
}

// Equal for equal locks of one client.
std::string identity_of(std::vector<key_ptr> const& members, bool majority) {
  std::string made = majority ? "red" : "multi";
  auto const add = [&](auto const& value) { made.append("|").append(value); };
  auto const address = [](void const* of) { return std::to_string(reinterpret_cast<std::uintptr_t>(of)); };
  for (auto const& one : members) {
    add(address(one->engine.get()));
    add(address(one->which));
    add(address(one->joint.get()));
    add(std::to_string(one->mode));
    add(std::to_string(one->name.size()));
    add(one->name);
  }
  return made;
}

key_ptr joint_key(std::shared_ptr<detail::core> const& engine, std::vector<key_ptr> members, bool majority) {
  check(members, majority);
  auto key = std::make_shared<lock_key>();
  key->engine = engine;
  for (auto const& one : members) key->name += (key->name.empty() ? "" : ",") + one->name;
  key->joint = std::static_pointer_cast<detail::joint_lock>(engine->attached(identity_of(members, majority), [&] {
    return std::make_shared<detail::joint_lock>(engine, std::move(members), majority);
  }));
  return key;
}

}  // namespace

distributed_lock client::join(std::vector<distributed_lock> members, bool majority) const {
  if (!core_) throw lock_error(errc::closed, "the client was moved from");
  if (core_->forked()) throw lock_error(errc::closed, "the client belongs to the parent process");
  std::vector<key_ptr> keys;
  for (auto& one : members) keys.push_back(std::move(one.key_));
  return distributed_lock(joint_key(core_, std::move(keys), majority));
}

distributed_lock client::get_multi_lock(std::vector<distributed_lock> members) const {
  return join(std::move(members), false);
}

distributed_lock client::get_red_lock(std::vector<distributed_lock> members) const {
  return join(std::move(members), true);
}

}  // namespace latchkey
