#include <simulation/kinds.hpp>

namespace latchkey::simulation {

namespace {

keyspace::hash_value const* hash_of(keyspace& data, std::string const& key) {
  keyspace::value* const found = data.find(key);
  return found ? std::get_if<keyspace::hash_value>(&found->holds) : nullptr;
}

}  // namespace

simulated_kind::server_hold simulated_kind::look(keyspace& data, std::string const& lock,
                                                 std::string const& field) const {
  server_hold made;
  if (auto const* const fields = hash_of(data, lock))
    for (auto const& [name_there, value] : *fields)
      if (name_there == field) {
        made.count = integer_of(value).value_or(0);
        made.ends = data.find(lock)->ends;
      }
  return made;
}

std::vector<std::string> simulated_kind::holders(keyspace& data, std::string const& lock) const {
  std::vector<std::string> made;
  if (auto const* const fields = hash_of(data, lock))
    for (auto const& [field, value] : *fields) made.push_back(field);
  return made;
}

std::vector<std::pair<detail::script const*, char const*>> simulated_kind::scripts() const {
  using detail::ask;
  std::vector<std::pair<detail::script const*, char const*>> made;
  constexpr std::pair<ask, char const*> always[] = {{ask::acquire, "acquire"},
                                                    {ask::release, "release"},
                                                    {ask::renew, "renew"},
                                                    {ask::extend, "extend"},
                                                    {ask::force_unlock, "force_unlock"}};
  for (auto const& [what, called] : always) made.emplace_back(&which.script_for(what), called);
  if (which.acquire_all()) made.emplace_back(which.acquire_all(), "acquire_all");
  if (which.rules().hand_off) made.emplace_back(&which.script_for(ask::hand_off), "hand_off");
  if (which.rules().own_channel) made.emplace_back(&which.script_for(ask::leave), "leave");
  return made;
}

bool simulated_kind::free(keyspace& data, std::string const& lock, std::string const&, task const&) const {
  return !data.find(lock);
}

std::vector<std::unique_ptr<simulated_kind>> const& simulated_kinds() {
  static auto const all = [] {
    std::vector<std::unique_ptr<simulated_kind>> made;
    for (auto make : {lock_kind, fenced_kind, non_reentrant_kind, spin_kind, plain_kind, fair_kind, read_write_kind,
                      semaphore_kind, permit_semaphore_kind, latch_kind, multi_kind, red_kind})
      made.push_back(make());
    return made;
  }();
  return all;
}

}  // namespace latchkey::simulation
