#pragma once

#include <string>
#include <unordered_map>

namespace latchkey::detail {

struct owner_state;

// Owners, by what servers know them as, of whom a server that was replaced may still run a request. If it becomes the
// master again, behind what others have done meanwhile, that may end a hold which began after it: docs/safety.md,
// "After a failover", rule 8.
class barred_owners {
 public:
  static std::string key_of(owner_state const& state);

  bool empty() const { return all_.empty(); }
  bool has(owner_state const& state) const { return !all_.empty() && all_.contains(key_of(state)); }
  void add(std::string const& key) { ++all_[key]; }
  void remove(std::string const& key);

 private:
  std::unordered_map<std::string, unsigned> all_;  // how many requests of each
};

}  // namespace latchkey::detail
