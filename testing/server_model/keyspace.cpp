#include <server_model/keyspace.hpp>

namespace latchkey::model {

keyspace::value* keyspace::find(std::string_view key) {
  auto const found = values_.find(key);
  if (found == values_.end()) return nullptr;
  if (found->second.ends == forever || found->second.ends >= now) return &found->second;
  values_.erase(found);
  return nullptr;
}

keyspace::value& keyspace::make(std::string_view key, data holds) {
  auto& made = values_[std::string(key)];
  made.holds = std::move(holds);
  made.ends = forever;
  return made;
}

bool keyspace::remove(std::string_view key) {
  if (!find(key)) return false;
  values_.erase(values_.find(key));
  return true;
}

std::vector<std::string> keyspace::keys() {
  std::vector<std::string> made;
  for (auto it = values_.begin(); it != values_.end();) {
    auto const& [key, there] = *it++;
    std::string name = key;
    if (find(name)) made.push_back(std::move(name));
  }
  return made;
}

}  // namespace latchkey::model
