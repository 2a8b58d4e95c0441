#include <simulation/simulation.hpp>
#include <support/start_one.hpp>

#include <stdexcept>

namespace latchkey::simulation {

using trick = planted_fault::trick;

void simulation::plant(planted_fault const& what) {
  if (what.script.empty()) return;
  for (auto const& [script, called] : kind_.scripts()) {
    if (what.script != called) continue;
    std::string text(script->text());
    auto const at = text.find(what.there);
    if (at == text.npos) throw std::invalid_argument("the script " + what.script + " has no place " + what.there);
    text.replace(at, what.there.size(), what.instead);
    for (auto& one : sites_) one->at.replace(std::string(script->sha()), text);
    return;
  }
  throw std::invalid_argument("no script " + what.script);
}

// Of a client that does not do as it was told.
config simulation::client_settings() const {
  config made = settings_;
  if (is_planted(trick::hurries)) made.retry_delay = milliseconds(1);
  if (is_planted(trick::never_lets_go)) made.local_handoff = {1'000, milliseconds(3'600'000)};
  return made;
}

// After each step. Nobody who checks is told.
void simulation::play_tricks() {
  dice chances(mix(options_.seed, 41, steps_));
  switch (options_.planted->what) {
    case trick::loses_keys:
      if (chances.one_in(40)) data_of(locks_[0]).remove(locks_[0].name);
      return;
    case trick::keeps_still:
      for (auto& one : sites_) one->at.mute = true;
      return;
    case trick::leaves_a_key:
      if (ending_) data_of(locks_[0]).make("left", keyspace::text_value("1"));
      return;
    case trick::leaves_a_record: return wait_on();
    case trick::chatters:
      if (resting_) sites_[0]->at.commands += 50;
      return;
    default: return;
  }
}

// A caller of whom nobody who checks knows waits for what a stranger has.
void simulation::wait_on() {
  if (!resting_ || unknown_ || nodes_[0]->gone || nodes_[0]->machine.closed()) return;
  node& me = *nodes_[0];
  stranger(detail::ask::acquire, locks_[0], 600'000);
  unknown_ = std::make_unique<task>();
  unknown_->what = task::type::acquire;
  unknown_->which = &kind_.which;
  unknown_->key = locks_[0].name;
  unknown_->name = unknown_->key;
  unknown_->owner = 1;
  unknown_->deadline = detail::never;
  test::start_one(me.machine, *unknown_, false, client_time(me), me.out);
  perform(0);
}

}  // namespace latchkey::simulation
