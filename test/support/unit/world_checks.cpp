#include <support/unit/transfers.hpp>
#include <support/unit/world.hpp>

#include <algorithm>

namespace latchkey::test {

stats world::snapshot(std::size_t client) const {
  stats made;
  clients_[client]->machine.snapshot(made);
  return made;
}

std::string client_id(std::size_t client) { return std::string("client") + static_cast<char>('A' + client); }

std::string world::field(std::uint64_t owner, std::size_t client) const {
  return client_id(client) + ":" + std::to_string(owner);
}

std::size_t world::noted(event_type what) const {
  return static_cast<std::size_t>(
      std::count_if(notes.begin(), notes.end(), [&](auto const& one) { return one.type == what; }));
}

// Nobody believes to hold what somebody else believes to hold, and the server remembers what anybody believes.
void world::check_holds() {
  if (!watch_holds) return;
  struct belief {
    task const* of;
    int count;
  };
  std::vector<belief> all;
  for (auto const& one : tasks_) {
    if (!one->trusted(now) || one->removed) continue;
    belief* counted = nullptr;
    for (auto& other : all) {
      task const& of = *other.of;
      if (of.key != one->key || of.which != one->which) continue;
      bool const same = of.client == one->client && of.owner == one->owner;
      if (same && of.mode == one->mode) counted = &other;
      if (exclusive && !same && !of.which->rules().shares(of.mode, one->mode))
        fail("two valid holders: " + of.label + " and " + one->label);
    }
    if (counted)
      ++counted->count;
    else
      all.push_back({one.get(), 1});
  }
  if (!exclusive || !others_.empty()) return;
  for (auto const& one : all) {
    auto const there = server.count(one.of->key, transfers::shown_field(*this, *one.of));
    auto const& rules = one.of->which->rules();
    bool const lags = settings.local_turns && rules.turns && one.of->mode == rules.turn_mode;
    if (there < (lags ? 1 : one.count)) fail("the server has forgotten the hold of " + one.of->label);
    if (server.last_instant(one.of->key) < detail::after(one.of->shown.until(), settings.clock_margin))
      fail("the server forgets the hold of " + one.of->label + " before its owner does, or not late enough");
  }
}

bool world::at_rest() const {
  for (auto const& one : tasks_)
    if (!one->done()) return false;
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    stats const s = snapshot(i);
    if (s.held + s.waiting + s.subscriptions + s.in_doubt > 0 || !clients_[i]->machine.quiet()) return false;
  }
  return events_.empty() && server.subscriptions() == 0 &&
         std::all_of(others_.begin(), others_.end(), [](auto const& one) { return one->subscriptions() == 0; });
}

bool world::at_ease() const {
  for (std::size_t i = 0; i < clients_.size(); ++i)
    if (snapshot(i).in_doubt > 0 || !clients_[i]->machine.quiet()) return false;
  return events_.empty();
}

void world::resolve() {
  for (int i = 0; i < 5'000; ++i) {
    run();
    for (std::size_t t = 0; t < tasks_.size(); ++t) {
      task& one = *tasks_[t];
      if (one.granted() && one.keeps && !one.ended) {
        if (one.shown.lost)
          drop(one);
        else
          release(one);
      }
    }
    run();
    if (at_rest()) return;
    if (!wait_for_next()) break;
  }
  std::string text = "does not come to rest:";
  for (auto const& one : tasks_)
    if (!one->done()) text += " " + one->label + " is not done;";
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    stats const s = snapshot(i);
    text += " held " + std::to_string(s.held) + " waiting " + std::to_string(s.waiting) + " subscriptions " +
            std::to_string(s.subscriptions) + " in_doubt " + std::to_string(s.in_doubt) +
            (clients_[i]->machine.quiet() ? "" : " not quiet");
  }
  fail(text);
}

void world::check_at_rest() {
  for (auto const& one : tasks_)
    if (one->completions != 1) fail(one->label + " was not completed exactly once");
  for (std::size_t i = 0; i <= (how_ == known::by_nodes ? others_.size() : 0); ++i) {
    if (how_ == known::by_nodes && !slots_.epochs.contains(i)) continue;  // has no names any more
    for (auto const& there : nodes::at(*this, i).all())
      if (there.find("/client") != std::string::npos) fail("a hold without an owner is left: " + there);
  }
  for (std::size_t i = 0; i < clients_.size(); ++i)
    if (!clients_[i]->machine.idle()) fail("an owner state, a queue entry or a listener is left");
}

void world::finish() {
  resolve();
  check_at_rest();
  before_step = {};
  // Until what was released is safe it is asked who has it, and released again where it has gone.
  if (how_ != known::by_address) pass(std::chrono::seconds(60));
  milliseconds const round = std::max<milliseconds>(settings.ping_interval, std::chrono::seconds(30)) * 3;
  // Links that died while nobody looked are found and replaced; nothing else is to be done.
  std::size_t const resolved = server.log.size();
  pass(round);
  for (std::size_t i = resolved; i < server.log.size(); ++i)
    if (server.log[i].starts_with("EVAL") || server.log[i].starts_with("SUBSCRIBE"))
      fail("at rest, and still it says " + server.log[i]);
  // From here on it looks now and then whether the server is there, and that is all.
  std::size_t const said = server.log.size();
  int const woken = wakes_;
  pass(round);
  for (std::size_t i = said; i < server.log.size(); ++i)
    if (server.log[i] != "PING") fail("at rest, and still it says " + server.log[i]);
  if (wakes_ - woken > 30 * static_cast<int>(clients_.size())) fail("at rest, and it wakes up again and again");
  check_at_rest();
}

}  // namespace latchkey::test
