#include <support/unit/sweep.hpp>

#include <support/catch.hpp>
#include <support/patience.hpp>

#include <algorithm>

namespace latchkey::test {

namespace {

enum class history { none, kept };

// Without a sanitizer every step is looked at. Under one these sweeps are half of the time of its unit tests: there it
// is every fourth with `--long` and every twelfth otherwise, from a first one that differs among the faults.
int stride() { return slowness == 1 ? 1 : slowness * (in_long_form() ? 1 : 3); }

int first_step(std::string const& title, int steps) {
  return static_cast<int>(title.size()) % std::min(stride(), steps);
}

// Answers how many steps that took.
int play_once(scenario const& what, std::function<void(world&)> const& before, history keeps) {
  world w(what.settings(), what.clients, what.how);
  if (what.how == world::known::by_nodes) {
    w.add_server();
    w.resolve_to(w.server);
  }
  w.faulty = static_cast<bool>(before);
  w.before_step = before;
  w.keeps_history = keeps == history::kept;
  what.play(w);
  w.finish();
  if (what.after) what.after(w);
  return w.steps();
}

// Plays it once, with `before` called before every step. Nobody reads the history of what went well, and it is most of
// the work; what broke plays the same way again and tells it.
int play(scenario const& what, std::string const& title, std::function<void(world&)> const& before) {
  try {
    try {
      return play_once(what, before, history::none);
    } catch (violation const&) {
      play_once(what, before, history::kept);
      FAIL(title << ": breaks the first time it is played, and not the second");
    }
  } catch (violation const& broken) {
    FAIL(title << ": " << broken.what());
  }
  return 0;
}

int play_without_faults(scenario const& what) { return play(what, "without faults", {}); }

void at_every_step(scenario const& what, std::string const& title, std::function<void(world&)> const& fault) {
  int const steps = play_without_faults(what);
  REQUIRE(steps > 0);
  for (int k = first_step(title, steps); k < steps; k += stride())
    play(what, title + " at step " + std::to_string(k), [&](world& w) {
      if (w.steps() == k) fault(w);
    });
}

}  // namespace

void sweep_losses(scenario const& what) {
  struct way {
    fate of;
    char const* name;
  };
  constexpr way ways[] = {{fate::gone, "lost, bytes gone"},
                          {fate::ran, "lost, bytes run at once"},
                          {fate::late, "lost, bytes run late"},
                          {fate::silent, "silent"}};
  constexpr std::pair<role, char const*> roles[] = {
      {role::shared, "shared link "}, {role::direct, "direct lane "}, {role::messages, "message link "}};
  for (auto const& [as, link] : roles)
    for (auto const& [of, name] : ways)
      at_every_step(what, std::string(link) + name, [as = as, of = of](world& w) { w.lose(as, of); });
}

void sweep_cancels(scenario const& what) {
  std::size_t calls = 0;
  play(what, "to count the calls", [&](world& w) { calls = std::max(calls, w.tasks().size()); });
  for (std::size_t i = 0; i < calls; ++i)
    at_every_step(what, "call " + std::to_string(i + 1) + " cancelled", [i](world& w) {
      if (i >= w.tasks().size()) return;
      task& one = *w.tasks()[i];
      if (one.what == task::type::acquire && !one.done()) w.cancel(one);
    });
}

void sweep_restarts(scenario const& what) {
  at_every_step(what, "server restarted", [](world& w) { w.server.restart(true); });
}

void sweep_moves(scenario what) {
  what.how = world::known::by_nodes;
  at_every_step(what, "slot moved", [](world& w) { nodes::move(w, "k", 1); });
  // By turns gone, and a replica by then.
  at_every_step(what, "node replaced", [](world& w) {
    nodes::at(w, 1).redis.data = w.server.redis.data;
    nodes::take_over(w, 0, 1, w.steps() / stride() % 2 == 0);
  });
  constexpr int later = 7;
  int const steps = play_without_faults(what);
  for (int k = 0; k < steps; k += 3 * stride()) {
    std::string const at = " at step " + std::to_string(k);
    play(what, "slot moved, and back" + at, [&](world& w) {
      if (w.steps() == k) nodes::move(w, "k", 1);
      if (w.steps() == k + later) nodes::move(w, "k", 0);
    });
    play(what, "slot half moved" + at, [&](world& w) {
      if (w.steps() == k) nodes::begin_move(w, "k", 1);
      if (w.steps() == k) nodes::move_keys(w, "k", 1);
      if (w.steps() == k + later) nodes::move(w, "k", 1);
    });
    for (role const as : {role::shared, role::direct, role::messages})
      play(what, "slot moved, and a link lost" + at, [&](world& w) {
        if (w.steps() == k) nodes::move(w, "k", 1);
        if (w.steps() == k + 3) w.lose(as, fate::late);
      });
  }
}

void sweep_one_server(scenario const& what) {
  play_without_faults(what);
  sweep_losses(what);
  sweep_cancels(what);
  sweep_restarts(what);
}

void sweep(scenario const& what) {
  sweep_one_server(what);
  sweep_moves(what);
}

}  // namespace latchkey::test
