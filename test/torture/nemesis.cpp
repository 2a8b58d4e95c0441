#include <support/kinds.hpp>
#include <torture/kinds.hpp>
#include <torture/nemesis.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace latchkey::torture {

namespace {

constexpr std::int64_t storm = 8 * second;  // then all is well for a while
constexpr std::int64_t rest = 2 * second;

}  // namespace

std::vector<std::string> const& nemesis_names() {
  static auto const names = [] {
    std::vector<std::string> made;
    for (auto const& one : all_nemeses()) made.push_back(one.name);
    return made;
  }();
  return names;
}

std::string nemesis_about(std::string const& name) {
  for (auto const& one : all_nemeses())
    if (one.name == name) return one.about;
  return {};
}

nemeses::nemeses(stage& on, std::vector<std::string> const& which, std::uint64_t seed)
    : on_(on), dice_(simulation::mix(seed, 77)), began_(now()), next_(began_ + second / 2) {
  auto const& names = nemesis_names();
  for (auto const& name : which) {
    which_.push_back(static_cast<std::uint32_t>(std::find(names.begin(), names.end(), name) - names.begin()));
    struck_[name] = 0;
  }
}

std::int64_t nemeses::next_strike() {
  auto const at = now() + dice_.between(10 * ms, 250 * ms);
  auto const into = (at - began_) % (storm + rest);
  return into < storm ? at : at + (storm + rest - into);
}

void nemeses::step() {
  auto const at = now();
  for (auto one = wounds_.begin(); one != wounds_.end();) {
    if (one->end > at || !one->heal()) {
      ++one;
      continue;
    }
    record line;
    line.what = what::fault;
    line.code = one->which;
    line.a = one->begin;
    line.b = now();
    line.c = one->whom;
    on_.log().write(line);
    one = wounds_.erase(one);
  }
  if (which_.empty() || at < next_) return;
  strike();
  next_ = next_strike();
}

void nemeses::strike() {
  auto const which = which_[dice_.below(which_.size())];
  auto const& one = all_nemeses()[which];
  auto const begin = now();
  auto made = one.strike(on_, dice_);
  if (!made) return;  // not possible now
  ++struck_[one.name];
  wounds_.push_back({which, begin, begin + made->length, made->whom, std::move(made->heal)});
}

void nemeses::heal() {
  which_.clear();
  for (auto& one : wounds_) one.end = 0;
  while (!wounds_.empty()) step();
}

namespace {

int any_worker(stage& on, simulation::dice& dice) {
  return static_cast<int>(dice.below(static_cast<std::uint64_t>(on.workers())));
}

std::optional<blow> kill_one(stage& on, simulation::dice& dice) {
  int const whom = any_worker(on, dice);
  if (!on.lives(whom)) return {};
  on.kill(whom);
  return healed_by(whom, dice.between(0, 500) * ms, [&on, whom] { on.spawn(whom); });
}

std::optional<blow> stop_one(stage& on, simulation::dice& dice) {
  int const whom = any_worker(on, dice);
  if (!on.lives(whom) || on.stopped(whom)) return {};
  on.stop(whom);
  return healed_by(whom, pause_length(on, dice, 3), [&on, whom] { on.resume(whom); });
}

// New sockets cannot be made for a while; those that are cut are missed.
std::optional<blow> few_descriptors(stage& on, simulation::dice& dice) {
  int const whom = any_worker(on, dice);
  if (!on.lives(whom)) return {};
  pid_t const pid = on.pid(whom);
  rlimit before{};
  rlimit few{};
  if (::prlimit(pid, RLIMIT_NOFILE, nullptr, &before) != 0 || before.rlim_cur < 64) return {};
  few.rlim_cur = 4 + dice.below(16);
  few.rlim_max = before.rlim_max;
  if (::prlimit(pid, RLIMIT_NOFILE, &few, nullptr) != 0) return {};
  for (int s = 0; s < on.servers(); ++s) on.proxy(whom, s).cut();
  return healed_by(whom, dice.between(50, 800) * ms, [&on, whom, pid, before] {
    if (on.pid(whom) == pid) ::prlimit(pid, RLIMIT_NOFILE, &before, nullptr);
  });
}

}  // namespace

std::vector<nemesis> client_nemeses() {
  return {
      {"kill", "a process is killed and, soon after, started again", kill_one},
      {"stop", "a process stands still for up to three leases", stop_one},
      {"descriptors", "a process loses its connections and can open no other for a while", few_descriptors},
  };
}

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
  if (kind.name == "multi_lock" && dice.one_in(2)) made.key = test::member_name(made.key, 1);
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
