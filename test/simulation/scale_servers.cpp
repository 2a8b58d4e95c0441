#include <simulation/scale_run.hpp>
#include <wire/cluster.hpp>

#include <algorithm>

namespace latchkey::scale {

namespace {

using namespace std::chrono_literals;

// What a server does for a command, in round figures of docs/sizing.md: the way in and out, a lock in a script, a
// message to one who listens, CLUSTER NODES and each of its lines.
constexpr nanoseconds any_command = 5us;
constexpr nanoseconds each_lock = 3'500ns;
constexpr nanoseconds each_message = 1us;
constexpr nanoseconds all_nodes = 25us;
constexpr nanoseconds each_node = 1'200ns;
constexpr nanoseconds of_replicas = 200us;  // until they have confirmed what WAIT asks for

bool is_script(std::string_view command) { return command.starts_with("EVAL"); }

std::size_t shard_of(std::string_view name, std::size_t shards) {
  return detail::slot_of(name) * shards / detail::slot_count;
}

std::string_view word(std::string_view text, std::size_t which) {
  for (; which > 0; --which) text.remove_prefix(std::min(text.find(' '), text.size() - 1) + 1);
  return text.substr(0, text.find(' '));
}

// As in `EVALSHA acquire k f 1 30000`, `CLUSTER NODES`.
std::string sort_of(std::string_view line) {
  auto const command = word(line, 0);
  if (is_script(command)) return std::string(word(line, 1)) + (command == "EVAL" ? " (text)" : "");
  bool const with_more = command == "CLIENT" || command == "SCRIPT";
  return std::string(with_more ? line.substr(0, command.size() + 1 + word(line, 1).size()) : command);
}

}  // namespace

void scale_run::add_site(std::size_t shard) {
  std::size_t const index = sites_.size();
  site& one = *sites_.emplace_back(std::make_unique<site>(now_));
  one.shard = shard;
  one.epoch = index + 1;
  auto& redis = one.server.redis;
  redis.version = "7.0.15";
  redis.run_id = "server" + std::to_string(index);
  redis.replicas = redis.synced_replicas = 1;
  one.server.elsewhere = [this, index](words const& command, bool) { return before(index, command); };
  one.server.on_reply = [&one](test::stepped_server::id at) {
    if (auto const found = one.wires.find(at); found != one.wires.end()) one.spoken_to.push_back(found->second);
  };
  one.server.on_end = [this, &one](test::stepped_server::id at) {
    auto const found = one.wires.find(at);
    if (found == one.wires.end()) return;
    wires_[found->second].ended = true;
    post(event::type::ended, now_ + way(wires_[found->second].client), found->second);
  };
}

// Redis: getNodeByQuery.
std::string scale_run::before(std::size_t index, words const& command) {
  bool const script = is_script(command[0]);
  if (!script && command[0] != "SSUBSCRIBE") return {};
  std::string const& key = command.at(script ? 3 : 1);
  std::size_t const leader = leader_of(shard_of(key, shards_));
  if (leader != index) return "MOVED " + std::to_string(detail::slot_of(key)) + ' ' + std::to_string(leader) + ":1";
  return {};
}

// --- the queue of commands ---

void scale_run::reached(std::uint32_t number) {
  wire& on = wires_[number];
  std::string const bytes = std::move(on.up.front());
  on.up.pop_front();
  site& there = *sites_[on.site];
  if (there.dead || on.ended) return;
  bool const question = on.scout && bytes.find("CLUSTER") != bytes.npos;
  std::size_t const commands = on.scout ? question : there.server.arrive(on.at, bytes);
  for (std::size_t i = 0; i < commands; ++i) there.queue.push_back({number, now_, false});
  if (!there.busy) serve(on.site);
}

void scale_run::serve(std::uint32_t index) {
  site& there = *sites_[index];
  there.busy = false;
  while (!there.queue.empty() && !there.dead) {
    auto const next = there.queue.front();
    there.queue.pop_front();
    wire& on = wires_[next.wire];
    if (next.end) {
      there.server.leave(on.at, true);
      there.wires.erase(on.at);
      continue;
    }
    if (on.ended) continue;
    if (index == shards_) found_.longest_queue = std::max(found_.longest_queue, now_ - next.since);
    nanoseconds late{};
    nanoseconds const cost = on.scout ? tell_nodes(next.wire) : run_command(there, on, late);
    for (std::uint32_t number : there.spoken_to) deliver(number, cost + late);
    there.spoken_to.clear();
    there.busy = true;
    return post(event::type::served, now_ + cost, index);
  }
}

nanoseconds scale_run::tell_nodes(std::uint32_t number) {
  wire const& on = wires_[number];
  nanoseconds const cost = any_command + all_nodes + each_node * static_cast<std::int64_t>(2 * shards_);
  count(on.site, "CLUSTER NODES", cost);
  sites_[on.site]->spoken_to.push_back(number);
  return cost;
}

nanoseconds scale_run::run_command(site& at, wire& on, nanoseconds& late) {
  at.server.log.clear();
  if (!at.server.execute(on.at)) return {};
  std::string const line = std::move(at.server.log.front());
  std::string const sort = sort_of(line);
  nanoseconds cost = any_command;
  // Names of one slot share a call, and only those do.
  if (is_script(line)) cost += each_lock;
  if (at.spoken_to.size() > 1) cost += each_message * static_cast<std::int64_t>(at.spoken_to.size() - 1);
  if (sort == "WAIT") late = of_replicas;
  count(on.site, sort, cost);
  if (on.site == shards_ && is_script(line)) look_at(word(line, 2), sort.starts_with("acquire"));
  return cost;
}

void scale_run::deliver(std::uint32_t number, nanoseconds after) {
  wire& on = wires_[number];
  on.last_down = std::max(on.last_down + 1ns, now_ + after + way(on.client));
  post(event::type::heard, on.last_down, number);
}

void scale_run::count(std::size_t index, std::string_view sort, nanoseconds cost) {
  sites_[index]->worked.add(elapsed(), cost);
  std::size_t at = static_cast<std::size_t>(part::usual);
  if (died_ && !elected_) at = static_cast<std::size_t>(part::outage);
  if (elected_) at = static_cast<std::size_t>(elapsed() < found_.elected + 1s ? part::storm : part::aftermath);
  if (!died_ && elapsed() < milliseconds(what_.warm_up) - 10s) return;
  work& to = (sites_[index]->shard == failed ? found_.here : found_.elsewhere)[at];
  auto const known = to.sorts.find(sort);
  if (known == to.sorts.end())
    to.sorts.emplace(sort, 1);
  else
    ++known->second;
  to.busy += cost;
}

// A script runs at the new master.
void scale_run::look_at(std::string_view name, bool tries) {
  auto const found = by_name_.find(name);
  if (found == by_name_.end()) return;
  lock& one = locks_[found->second];
  if (one.held_then) found_.asserted.add(elapsed() - found_.died);
  one.held_then = false;
  if (one.wanted_then && tries) {
    found_.asked.add(elapsed() - found_.died);
    one.wanted_then = false;
  }
}

// --- the cluster ---

void scale_run::write_nodes() {
  std::string text;
  auto const line = [&](std::size_t number, std::string const& flags, std::string const& of, std::uint64_t epoch) {
    std::string const name = std::to_string(number);
    text += "id" + name + ' ' + name + ":1@2 " + flags + ' ' + of + " 0 0 " + std::to_string(epoch) + " connected";
  };
  for (std::size_t i = 0; i < shards_; ++i) {
    std::size_t const leader = leader_of(i);
    line(leader, "master", "-", sites_[leader]->epoch);
    auto const first = [&](std::size_t shard) { return (shard * detail::slot_count + shards_ - 1) / shards_; };
    text += ' ' + std::to_string(first(i)) + '-' + std::to_string(first(i + 1) - 1) + '\n';
    if (leader != i) {
      line(i, "master,fail", "-", sites_[i]->epoch);
    } else {
      line(i == failed ? shards_ : shards_ + 1 + i, "slave", "id" + std::to_string(leader), sites_[leader]->epoch);
    }
    text += '\n';
  }
  nodes_ = '$' + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

void scale_run::die() {
  died_ = true;
  found_.died = elapsed();
  site& old = *sites_[failed];
  old.dead = true;
  old.queue.clear();
  for (auto const& one : wires_) found_.connections += one.open;
  for (std::uint32_t number = 0; number < wires_.size(); ++number) {
    wire& on = wires_[number];
    if (on.site != failed || !on.open || on.ended) continue;
    on.ended = true;
    if (!what_.silent) post(event::type::ended, std::max(on.last_down, now_) + way(on.client), number);
  }
  look_around();
}

// It has all that the old one had, and knows none of its scripts.
void scale_run::elect() {
  elected_ = true;
  found_.elected = elapsed();
  site& next = *sites_[shards_];
  next.server.redis.data = sites_[failed]->server.redis.data;
  next.server.flush_scripts();
  write_nodes();
}

void scale_run::look_around() {
  for (auto& one : locks_) {
    if (one.shard != failed) continue;
    one.held_then = one.holder && one.holder->trusted(now_);
    one.wanted_then = one.forgotten = one.waiting > 0;
    found_.held += one.held_then;
    found_.wanted += one.wanted_then;
  }
}

}  // namespace latchkey::scale
