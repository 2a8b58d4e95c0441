#include <torture/nemesis_list.hpp>

#include <sys/resource.h>

namespace latchkey::torture {

namespace {

int any_worker(stage& on, simulation::dice& dice) {
  return static_cast<int>(dice.below(static_cast<std::uint64_t>(on.workers())));
}

std::optional<blow> kill_one(stage& on, simulation::dice& dice) {
  int const whom = any_worker(on, dice);
  if (!on.lives(whom)) return {};
  on.kill(whom);
  return blow{whom, dice.between(0, 500) * ms, [&on, whom] {
                on.spawn(whom);
                return true;
              }};
}

std::optional<blow> stop_one(stage& on, simulation::dice& dice) {
  int const whom = any_worker(on, dice);
  if (!on.lives(whom) || on.stopped(whom)) return {};
  on.stop(whom);
  return blow{whom, pause_length(on, dice, 3), [&on, whom] {
                on.resume(whom);
                return true;
              }};
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
  return blow{whom, dice.between(50, 800) * ms, [&on, whom, pid, before] {
                if (on.pid(whom) == pid) ::prlimit(pid, RLIMIT_NOFILE, &before, nullptr);
                return true;
              }};
}

}  // namespace

std::vector<nemesis> client_nemeses() {
  return {
      {"kill", "a process is killed and, soon after, started again", kill_one},
      {"stop", "a process stands still for up to three leases", stop_one},
      {"descriptors", "a process loses its connections and can open no other for a while", few_descriptors},
  };
}

}  // namespace latchkey::torture
