#include <support/unit/stepped_server.hpp>

#include <wire/kinds.hpp>

#include <array>
#include <stdexcept>
#include <utility>

namespace latchkey::test {

namespace {

constexpr std::string_view probed_id = "9223372036854775807";

auto& by_sha() {
  static std::map<std::string, named_script, std::less<>> made;
  return made;
}

void add_name(detail::script const& one, std::string name) {
  by_sha().try_emplace(std::string(one.sha()), named_script{std::move(name), &one});
}

// Null: no script is known by this SHA-1.
named_script const* named(std::string_view sha) {
  static bool const begun = [] {
    using namespace detail;
    add_name(no_keys_script(), "nothing");
    name_scripts(reentrant_kind(), "");
    name_scripts(spin_kind(), "spin_");
    name_scripts(fenced_kind(), "fenced_");
    name_scripts(fenced_kind(true), "seeded_");
    name_scripts(plain_kind(), "plain_");
    name_scripts(read_write_kind(), "rw_");
    name_scripts(fair_kind(), "fair_");
    for (auto const* one : {&semaphore_kind(), &permit_semaphore_kind(), &count_down_latch_kind()})
      name_scripts(*one, std::string(one->rules().name) + "_");
    return true;
  }();
  auto const found = begun && sha.size() == 40 ? by_sha().find(sha) : by_sha().end();
  return found == by_sha().end() ? nullptr : &found->second;
}

// As it stands in the log and is compared with refusals: the script's name instead of its SHA-1 and the count of keys.
std::string shown(stepped_server::words const& words) {
  std::string made;
  for (std::size_t i = 0; i < words.size(); ++i) {
    bool const script = i > 0 && words[0].starts_with("EVAL");
    if (script && i == 2) continue;
    std::string word = words[i];
    if (script && i == 1 && words[0] == "EVAL") word = detail::script(word).sha();
    if (auto const* const found = named(word))
      word = found->name;
    else if (script && i == 1)
      word = "unknown";
    if (words[0] == "CLIENT" && words.size() == 4 && words[3] == probed_id && i == 1) word = "PROBE";
    made += (i == 0 ? "" : " ") + word;
  }
  return made;
}

}  // namespace

void name_scripts(detail::kind const& of, std::string const& prefix) {
  using detail::ask;
  static constexpr std::array<std::pair<ask, char const*>, 7> requests = {{{ask::acquire, "acquire"},
                                                                           {ask::release, "release"},
                                                                           {ask::hand_off, "hand_off"},
                                                                           {ask::renew, "renew"},
                                                                           {ask::extend, "extend"},
                                                                           {ask::force_unlock, "force_unlock"},
                                                                           {ask::leave, "leave"}}};
  for (auto const& [what, name] : requests) try {
      add_name(of.script_for(what), prefix + name);
    } catch (std::logic_error const&) {  // it has none
    }
  if (of.acquire_all()) add_name(*of.acquire_all(), prefix + "acquire_all");
  for (unsigned char i = 0; i < 16; ++i) try {
      add_name(of.command_script(i), prefix + "command");
    } catch (std::logic_error const&) {
    }
}

// --- connections ---

model::lua_scripts& stepped_server::interpreter() {
  static model::lua_scripts the_one;
  return the_one;
}

void stepped_server::set_clock() {
  redis.data.microseconds =
      std::chrono::floor<std::chrono::microseconds>((now_ + clock_ahead).time_since_epoch()).count();
  redis.data.now = redis.data.microseconds / 1'000;
}

stepped_server::id stepped_server::accept() {
  id const made = redis.accept();
  connections_[made];
  if (!noise.empty()) answered(made, std::string(noise));
  return made;
}

std::size_t stepped_server::arrive(id which, std::string_view bytes) {
  auto const found = connections_.find(which);
  if (found == connections_.end() || !redis.knows(which)) return 0;
  connection& one = found->second;
  one.reader.feed(bytes);
  std::size_t complete = 0;
  for (reply got; one.reader.next(got) == detail::reply_reader::result::reply; ++complete) {
    auto& words = one.commands.emplace_back();
    for (auto& word : got.elements) words.push_back(std::move(word.text));
  }
  return complete;
}

bool stepped_server::execute(id which) {
  auto const found = connections_.find(which);
  if (found == connections_.end() || found->second.commands.empty()) return false;
  words const command = std::move(found->second.commands.front());
  found->second.commands.pop_front();
  log.push_back(shown(command));
  std::string const text = log.back();
  for (auto it = refusals_.begin(); it != refusals_.end(); ++it) {
    if (!text.starts_with(it->start)) continue;
    std::string bytes;
    model::encode(model::error(it->text), bytes);
    if (it->times > 0 && --it->times == 0) refusals_.erase(it);
    answered(which, std::move(bytes));
    return true;
  }
  bool const asking = std::exchange(found->second.asking, false);
  if (command[0] == "ASKING") {
    found->second.asking = true;
    answered(which, "+OK\r\n");
    return true;
  }
  if (std::string const there = elsewhere ? elsewhere(command, asking) : std::string(); !there.empty()) {
    answered(which, '-' + there + "\r\n");
    return true;
  }
  if (knows_scripts_) load_scripts_of(command);
  set_clock();
  redis.serve(which, command);
  return true;
}

void stepped_server::load_scripts_of(words const& command) {
  for (auto const& word : command) {
    auto const found = named(word);
    if (found && loaded_.insert(found).second) redis.load(found->script->text());
  }
}

std::optional<std::string> stepped_server::take_reply(id which) {
  auto const found = connections_.find(which);
  if (found == connections_.end() || found->second.replies.empty()) return {};
  std::string made = std::move(found->second.replies.front());
  found->second.replies.pop_front();
  return made;
}

void stepped_server::leave(id which, bool lost) {
  auto const found = connections_.find(which);
  if (found == connections_.end()) return;
  connection& one = found->second;
  one.left = true;
  one.replies.clear();
  if (!lost && !one.commands.empty()) return;
  connections_.erase(found);
  redis.end_of_file(which);
}

std::size_t stepped_server::run_left_behind() {
  std::vector<id> left;
  for (auto const& [which, one] : connections_)
    if (one.left) left.push_back(which);
  std::size_t done = 0;
  for (id which : left) {
    while (execute(which)) ++done;
    leave(which, true);
  }
  return done;
}

void stepped_server::answered(id which, std::string&& bytes) {
  auto const found = connections_.find(which);
  if (found == connections_.end() || found->second.left) return;
  found->second.replies.push_back(std::move(bytes));
  on_reply(which);
}

void stepped_server::dropped(id which) {
  auto const found = connections_.find(which);
  if (found == connections_.end()) return;
  found->second.commands.clear();
  if (found->second.left)
    connections_.erase(found);
  else
    on_end(which);
}

// --- what befalls the server ---

void stepped_server::refuse(std::string start, std::string text, int times) {
  refusals_.push_back({std::move(start), std::move(text), times});
}

void stepped_server::flush_scripts() {
  knows_scripts_ = false;
  redis.flush_scripts();
}

void stepped_server::restart(bool with_data) {
  knows_scripts_ = false;
  redis.restart(with_data);
}

void stepped_server::hang_up() {
  std::vector<id> live;
  for (auto const& [which, one] : connections_)
    if (!one.left) live.push_back(which);
  for (id const one : live) redis.turn_away(one);
}

void stepped_server::answer_with(detail::script const& one, std::string_view lua) {
  redis.replace(std::string(one.sha()), lua.empty() ? one.text() : lua);
}

// --- other clients ---

reply stepped_server::ask(words const& command) {
  set_clock();
  return redis.execute(command);
}

bool stepped_server::stranger_takes(std::string const& key, std::string const& field, std::int64_t lease) {
  if (exists(key) && !has(key, field)) return false;
  set(key, field, 1);
  expire(key, lease);
  return true;
}

bool stepped_server::stranger_releases(std::string const& key, std::string const& field) {
  return has(key, field) && stranger_forces(key);
}

bool stepped_server::stranger_forces(std::string const& key) {
  if (!remove(key)) return false;
  publish(detail::reentrant_kind().channel(key, {}), "0");
  return true;
}

// --- data ---

model::keyspace::value const* stepped_server::find(std::string const& key) {
  set_clock();
  return redis.data.find(key);
}

std::int64_t stepped_server::count(std::string const& key, std::string const& field) {
  auto const* const there = find(key);
  if (!there) return 0;
  if (auto const* const text = std::get_if<model::keyspace::text_value>(&there->holds)) return *text == field ? 1 : 0;
  if (auto const* const fields = std::get_if<model::keyspace::hash_value>(&there->holds))
    for (auto const& [name, value] : *fields)
      if (name == field) return model::integer_of(value).value_or(0);
  return 0;
}

std::int64_t stepped_server::number(std::string const& key) {
  return model::integer_of(ask({"GET", key}).text).value_or(0);
}

std::vector<std::string> stepped_server::list(std::string const& key) {
  std::vector<std::string> made;
  for (auto& one : ask({"LRANGE", key, "0", "-1"}).elements) made.push_back(std::move(one.text));
  return made;
}

std::set<std::string> stepped_server::all() {
  set_clock();
  std::set<std::string> made;
  for (auto const& key : redis.data.keys()) {
    auto const& holds = redis.data.find(key)->holds;
    if (auto const* const text = std::get_if<model::keyspace::text_value>(&holds)) made.insert(key + "/" + *text);
    if (auto const* const fields = std::get_if<model::keyspace::hash_value>(&holds))
      for (auto const& [field, count] : *fields) made.insert(key + "/" + field + "=" + count);
  }
  return made;
}

// --- to be looked at ---

std::size_t stepped_server::ran(std::string_view start) const {
  std::size_t count = 0;
  for (auto const& line : log) count += std::string_view(line).starts_with(start);
  return count;
}

std::size_t stepped_server::subscriptions() const {
  return redis.subscriptions([&](id which) {
    auto const found = connections_.find(which);
    return found != connections_.end() && !found->second.left;
  });
}

instant stepped_server::last_instant(std::string const& key) {
  auto const* const there = find(key);
  if (!there) return {};
  if (there->ends == model::keyspace::forever) return never;
  return instant(milliseconds(there->ends + 1));
}

}  // namespace latchkey::test
