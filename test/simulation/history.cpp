#include <simulation/simulation.hpp>

#include <wire/item.hpp>

#include <algorithm>

namespace latchkey::simulation {

// --- words ---

std::string simulation::words_for(words_view words) const {
  std::string made = words[0];
  bool const script = lower(words[0]).starts_with("eval");
  for (std::size_t i = 1; i < words.size(); ++i) {
    std::string word = words[i];
    if (script && i == 1) {
      if (lower(words[0]) == "eval") word = detail::script(word).sha();
      auto const found = script_names_.find(word);
      word = found == script_names_.end() ? "?" : found->second;
    } else if (script && i == 2) {
      continue;
    }
    made += " ";
    for (char const c : word) {
      if (c >= ' ' && c <= '~') {
        made += c;
        continue;
      }
      char shown[4];
      std::snprintf(shown, sizeof shown, "%02x", static_cast<unsigned char>(c));
      made += shown;
    }
  }
  return made;
}

std::string simulation::brief(reply const& said) {
  std::string made;
  if (said.is_array()) {
    for (auto const& element : said.elements) made += (made.empty() ? "" : ", ") + brief(element);
    return "[" + made + "]";
  }
  static constexpr std::pair<detail::verdict, char const*> verdicts[] = {
      {detail::verdict::granted, "granted"},       {detail::verdict::gone, "gone"},
      {detail::verdict::released, "released"},     {detail::verdict::released_unpublished, "released, not published"},
      {detail::verdict::still_held, "still held"}, {detail::verdict::absent, "absent"},
      {detail::verdict::extended, "extended"}};
  for (auto const& [value, name] : verdicts)
    if (detail::says(said, value)) return name;
  if (said.is_integer()) return std::to_string(said.integer);
  std::string const& words = said.text;
  return words.substr(0, words.find_last_not_of("\r\n") + 1);
}

// --- who held what when ---

simulation::lock_state& simulation::lock_of(std::string_view name) {
  for (auto& one : locks_)
    if (one.name == name) return one;
  fail("no such lock");
  return locks_[0];
}

std::string simulation::field_of(task const& one) const {
  node const& me = *nodes_[one.client];
  bool const moves = kind_.which.rules().turns && settings_.local_turns;
  auto const shown_as = moves ? me.machine.shown_as(kind_.which, one.key, one.owner) : one.owner;
  return kind_.which.field(me.id, shown_as, one.mode);
}

// Looks at the server once more. What has ended since was ended by `by`, unless its time was over.
void simulation::observe(int by, bool late) {
  for (auto& one : sites_)
    if (std::exchange(one->lost_messages, one->at.lost_messages) != one->at.lost_messages) trouble_all(0);
  for (auto& lock : locks_) {
    auto const holders = kind_.holders(data_of(lock), lock.name);
    for (std::size_t i = 0; i < lock.present.size();) {
      tenure& one = lock.present[i];
      if (std::find(holders.begin(), holders.end(), one.field) != holders.end()) {
        ++i;
        continue;
      }
      one.to = now_;
      one.by = by;
      lock.past.push_back(std::move(one));
      lock.present.erase(lock.present.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (auto const& field : holders)
      if (std::none_of(lock.present.begin(), lock.present.end(), [&](tenure const& t) { return t.field == field; })) {
        for (auto const& before : lock.line) {
          if (before.field == field || late) break;
          if (before.dead_at > data_of(lock).now) fail(field + " was granted " + lock.name + " before " + before.field);
        }
        lock.present.push_back({.field = field, .from = now_});
      }
    note_reign(lock, holders);
    note_end(lock);
    if (kind_.which.rules().own_channel) note_line(lock, late);
    if (kind_.used_as != simulated_kind::use::holds) note_stock(lock);
  }
}

void simulation::note_end(lock_state& lock) {
  moment ends = 0;
  for (tenure& one : lock.present) {
    auto const there = kind_.look(data_of(lock), lock.name, one.field);
    moment const end = there.ends == keyspace::forever ? 0 : at(lock).when_gone(there.ends);
    moment const before = std::exchange(one.ends, end);
    ends = std::max(ends, end);
    // Of permits each end lets somebody in.
    if (kind_.used_as != simulated_kind::use::ids || end == 0 || (before != 0 && before <= end)) continue;
    moment const told = before != 0 ? before : now_ + ms(kind_.which.rules().hint_most);
    lock.told_until = std::max(lock.told_until, told);
  }
  if (ends != 0 && ends < lock.ends) lock.told_until = std::max(lock.told_until, lock.ends);
  lock.ends = ends;
}

// Whoever stands in the queue and does not count as dead keeps his place until he leaves it or is granted the lock;
// whoever comes stands behind all others.
void simulation::note_line(lock_state& lock, bool late) {
  auto line = kind_.line(data_of(lock), lock.name);
  auto const stands = [](auto const& where, auto const& one) {
    return std::any_of(where.begin(), where.end(), [&](auto const& other) { return other.field == one.field; });
  };
  std::vector<std::string> before;
  for (auto const& one : lock.line) {
    lock.stood[one.field] = now_;
    if (one.dead_at > data_of(lock).now && stands(line, one)) before.push_back(one.field);
  }
  std::size_t kept = 0;
  for (auto const& one : line) {
    bool const stood = stands(lock.line, one);
    if (late) break;
    if (kept < before.size() && one.field == before[kept])
      ++kept;
    else if (kept < before.size() && (!stood || std::find(before.begin(), before.end(), one.field) != before.end()))
      fail(before[kept] + " has lost its place in the queue of " + lock.name);
  }
  lock.line = std::move(line);
}

namespace {

bool refuses(reply const& said) {
  if (said.is_error() || said.kind == reply::type::string) return true;
  return std::any_of(said.elements.begin(), said.elements.end(), refuses);
}

// Nothing ran, and the client will ask again.
bool goes_again(reply const& said) {
  constexpr char const* words[] = {"NOSCRIPT", "LOADING", "BUSY"};
  return said.is_error() &&
         std::any_of(std::begin(words), std::end(words), [&](auto word) { return said.text.starts_with(word); });
}

}  // namespace

// What a script of a client did besides what its answer says to that client.
void simulation::note_script(words_view words, reply const& said) {
  if (words.size() < 4 || !lower(words[0]).starts_with("eval")) return;
  std::string const sha = words[0] == "EVAL" ? std::string(detail::script(words[1]).sha()) : words[1];
  auto const script = script_names_.find(sha);
  if (script == script_names_.end()) return;
  if (script->second == "force_unlock" && !said.is_error()) lock_of(words[3]).removed = now_;
  if (script->second == "release")
    for (auto& lock : locks_)
      for (auto const& word : words.subspan(3)) lock.releases.emplace_back(word, now_);
  if (script->second == "acquire_all" && !refuses(said)) {
    auto const granted = std::count_if(said.elements.begin(), said.elements.end(),
                                       [](reply const& one) { return detail::says(one, detail::verdict::granted); });
    if (granted != 0 && static_cast<std::size_t>(granted) != said.elements.size())
      fail("a bundle was granted a part of what it was asked for: " + words_for(words));
  }
  if (!refuses(said) || goes_again(said)) return;
  auto const concerns = [&](std::string const& word) {
    return std::find(words.begin() + 3, words.end(), word) != words.end();
  };
  for (auto& lock : locks_) {
    if (!concerns(lock.name)) continue;
    lock.refused = true;
    for (auto const& one : lock.line)
      if (concerns(one.field)) lock.stays.insert(one.field);
    if (script->second.starts_with("acquire")) continue;
    for (tenure& one : lock.present) one.refused = one.refused || concerns(one.field);
  }
}

// --- what callers were told ---

// A belief that rests on a request older than a fault that took the lock away is excused.
bool simulation::excused(task const& one) const {
  moment removed = -1;
  for (auto const& lock : locks_)
    if (lock.name == one.key) removed = lock.removed;
  if (removed < 0) return false;
  node const& me = *nodes_[one.client];
  auto const lease = longest_.find(&one);
  milliseconds longest =
      std::max(lease == longest_.end() ? milliseconds(0) : lease->second, settings_.lock_watchdog_timeout);
  // A turn lasts as long as what the client was granted before it.
  if (settings_.local_turns && kind_.has_turns(one))
    for (auto const& [other, its] : longest_)
      if (other->client == one.client && other->key == one.key)
        longest = std::max(longest, its + settings_.local_handoff.max_time);
  bool const endless_lease = kind_.used_as == simulated_kind::use::ids && one.lease.count() == 0;
  if (endless_lease || !one.keeps) return started_.at(&one) <= removed;
  return true_time(me, one.shown.until() - longest) <= removed;
}

// Who is granted after another one has heard of his grant has a higher token. Data that are lost take the counter
// along.
void simulation::check_token(task const& done) {
  if (!kind_.which.rules().tokens || !done.granted()) return;
  lock_state& lock = lock_of(done.key);
  for (auto const& [when, other] : lock.grants)
    if (when < started_.at(&done) && lock.removed < 0 && other->token >= done.token &&
        (other->client != done.client || other->owner != done.owner))
      fail(done.label + " has a token that is not above that of " + other->label);
  lock.grants.emplace_back(now_, &done);
}

void simulation::check_answer(task const& done) {
  check_token(done);
  lock_state const& lock = lock_of(done.key);
  moment const began = started_.at(&done);
  std::string const own = field_of(done);
  auto const overlaps = [&](tenure const& one) { return one.to >= began && one.field != own; };
  if (kind_.used_as == simulated_kind::use::holds && done.busy() && !done.untried && done.what == task::type::acquire) {
    bool const held = std::any_of(lock.past.begin(), lock.past.end(), overlaps) ||
                      std::any_of(lock.present.begin(), lock.present.end(), overlaps) ||
                      std::any_of(lock.stood.begin(), lock.stood.end(),
                                  [&](auto const& one) { return one.second >= began && one.first != own; });
    bool const queue = std::any_of(tasks_.begin(), tasks_.end(), [&](auto const& other) {
      return other.get() != &done && other->what == task::type::acquire && other->client == done.client &&
             other->key == done.key && started_.at(other.get()) <= now_ &&
             (!other->done() || other->done_at >= done.started);
    });
    if (!held && !queue && !behind_ours_.contains(&done) && lock.removed < began)
      fail(done.label + " was told that the lock is busy, though nobody else had it");
  }
  if (done.what != task::type::release || lock.removed >= 0) return;
  auto const hold = ended_by_.find(&done);
  if (hold == ended_by_.end()) return;
  bool const lost = hold->second->losses > 0;
  // What the server showed for another one of the client, it may have ended.
  bool const turns = settings_.local_turns && kind_.has_turns(*hold->second);
  auto const its_field = ended_in_.find(&done);
  std::string const& ended_in = its_field == ended_in_.end() ? own : its_field->second;
  auto const mine = [&](std::string const& field) {
    return field == ended_in || (turns && kind_.belongs(field, nodes_[done.client]->id));
  };
  bool const ended_here = std::any_of(lock.past.begin(), lock.past.end(), [&](tenure const& one) {
    return mine(one.field) && one.to >= began && one.by == static_cast<int>(done.client);
  });
  // A first copy whose answer was lost may have left other holds of the same owner, which have ended since.
  bool const released_here =
      ended_here || std::any_of(lock.releases.begin(), lock.releases.end(), [&](auto const& one) {
        return mine(one.first) && one.second >= began && one.second < now_;
      });
  // Or the next one of its client has it.
  bool const passed_on = turns && std::any_of(holders_.begin(), holders_.end(), [&](task const* next) {
                           return next->client == done.client && next->key == done.key && next->done_at >= done.started;
                         });
  if (!done.error && done.released == release_result::released && !released_here && !passed_on)
    fail(done.label + " was told that it has released the lock, which it did not");
  bool const expired = done.error == errc::lease_lost && done.released == release_result::expired;
  if (expired && !lost && ended_here) fail(done.label + " was told that the lease had expired, though it released it");
}

}  // namespace latchkey::simulation
