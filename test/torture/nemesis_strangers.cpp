#include <torture/kinds.hpp>
#include <torture/nemesis_list.hpp>

#include <stdexcept>

namespace latchkey::torture {

namespace {

struct victim {
  std::uint8_t kind;
  std::uint32_t lock;
  std::string key;
};

std::optional<victim> any_lock(stage& on, simulation::dice& dice) {
  auto const& kinds = on.run().kinds;
  victim made{kinds[dice.below(kinds.size())], static_cast<std::uint32_t>(dice.below(locks_of_a_kind)), {}};
  auto const& kind = torture_kinds()[made.kind];
  if (!kind.make || !on.answers(0)) return {};  // permits have no holder
  made.key = lock_name(made.kind, made.lock);
  if (kind.name == "multi_lock" && dice.one_in(2)) made.key += " too";
  return made;
}

// `certain`: whoever held it then is removed.
void note(stage& on, victim const& whose, std::int64_t begin, std::int64_t end, bool certain) {
  record line;
  line.what = what::deletion;
  line.kind = whose.kind;
  line.lock = whose.lock;
  line.a = begin;
  line.b = end;
  line.code = certain;
  on.log().write(line);
}

std::optional<blow> delete_key(stage& on, simulation::dice& dice) {
  auto const whose = any_lock(on, dice);
  if (!whose) return {};
  auto const begin = now();
  bool certain = false;
  try {
    certain = on.server(0).admin().integer("DEL", whose->key) == 1;
  } catch (std::runtime_error const&) {
    // Then it may have happened.
  }
  note(on, *whose, begin, now(), certain);
  return blow{.whom = whose->kind};
}

// Through a client of its own with a way of its own to the server. A joined lock is forced by one member.
std::optional<blow> force_unlock(stage& on, simulation::dice& dice) {
  auto const whose = any_lock(on, dice);
  if (!whose) return {};
  auto const begin = now();
  auto late = std::int64_t{0};
  try {
    config settings;
    settings.timeout = settings.connect_timeout = settings.close_timeout = milliseconds(500);
    settings.retry_attempts = 0;
    std::vector<client> stranger;
    stranger.emplace_back(on.server(0).uri(), settings);
    auto const& kind = torture_kinds()[whose->kind];
    bool const joined = kind.name == "multi_lock" || kind.servers > 1;
    auto const lock = joined ? stranger[0].get_lock(whose->key) : kind.make(stranger, whose->key, dice.one_in(2));
    lock.force_unlock();
  } catch (lock_error const&) {
    late = 2 * second;  // a request without an answer may run later
  }
  note(on, *whose, begin, now() + late, false);
  return blow{.whom = whose->kind};
}

}  // namespace

std::vector<nemesis> stranger_nemeses() {
  return {
      {"delete", "a stranger deletes the key of a lock", delete_key},
      {"force", "a stranger calls force_unlock", force_unlock},
  };
}

std::vector<nemesis> const& all_nemeses() {
  static auto const all = [] {
    std::vector<nemesis> made;
    for (auto const& some :
         {client_nemeses(), network_nemeses(), server_nemeses(), sickness_nemeses(), stranger_nemeses()})
      made.insert(made.end(), some.begin(), some.end());
    return made;
  }();
  return all;
}

std::int64_t pause_length(stage const& on, simulation::dice& dice, std::uint64_t one_in_long) {
  std::int64_t const lease = on.run().lease.count() * ms;
  if (dice.one_in(one_in_long)) return dice.one_in(3) ? dice.between(lease, 3 * lease) : dice.between(lease / 4, lease);
  return dice.between(5 * ms, lease / 4);
}

}  // namespace latchkey::torture
