#include <support/unit/fake_store.hpp>

namespace latchkey::test {

fake_store::hash* fake_store::find(std::string_view key) {
  auto const found = hashes_.find(key);
  if (found == hashes_.end()) return nullptr;
  if (found->second.ends > now_) return &found->second;
  hashes_.erase(found);
  return nullptr;
}

bool fake_store::has(std::string_view key, std::string_view field) {
  hash const* const there = find(key);
  return there && there->fields.contains(field);
}

std::int64_t fake_store::count(std::string_view key, std::string_view field) {
  hash const* const there = find(key);
  if (!there) return 0;
  auto const found = there->fields.find(field);
  return found == there->fields.end() ? 0 : found->second;
}

std::int64_t fake_store::ttl(std::string_view key) {
  hash const* const there = find(key);
  if (!there) return -2;
  if (there->ends == never) return -1;
  return std::chrono::floor<milliseconds>(there->ends - now_).count();
}

void fake_store::expire(std::string_view key, std::int64_t lease) {
  if (hash* there = find(key)) there->ends = detail::after(now_, milliseconds(lease));
}

std::set<std::string> fake_store::all() {
  std::set<std::string> keys, made;
  for (auto const& [key, there] : hashes_) keys.insert(key);
  for (auto const& key : keys)
    if (hash const* there = find(key))
      for (auto const& [field, count] : there->fields) made.insert(key + "/" + field + "=" + std::to_string(count));
  return made;
}

}  // namespace latchkey::test
