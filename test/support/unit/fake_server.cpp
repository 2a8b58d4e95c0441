#include <support/unit/fake_server.hpp>

#include <wire/kind.hpp>
#include <wire/reentrant_scripts.hpp>

#include <stdexcept>

namespace latchkey::test {

namespace {

std::string channel_of(std::string_view key) { return detail::reentrant_kind().channel(key, {}); }

}  // namespace

fake_server::fake_server(instant const& now, int first_port)
    : run_id("process-" + std::to_string(first_port)), store(now), next_port_(first_port), bodies_(reentrant_bodies()) {
  using namespace detail;
  names_[std::string(reentrant_acquire().sha())] = "acquire";
  names_[std::string(reentrant_acquire_all().sha())] = "acquire_all";
  names_[std::string(reentrant_release().sha())] = "release";
  names_[std::string(reentrant_hand_off().sha())] = "hand_off";
  names_[std::string(reentrant_renew().sha())] = "renew";
  names_[std::string(reentrant_extend().sha())] = "extend";
  names_[std::string(reentrant_force_unlock().sha())] = "force_unlock";
  for (auto const& [sha, body] : bodies_) loaded_.insert(sha);
}

void fake_server::teach(detail::script const& text, std::string name, script_body body) {
  std::string const sha(text.sha());
  bodies_[sha] = std::move(body);
  names_[sha] = std::move(name);
  loaded_.insert(sha);
}

// --- connections ---

fake_server::id fake_server::accept() {
  id const made = next_id_++;
  connection& one = connections_[made];
  one.address = on_unix_socket ? "/run/redis.sock:0" : "127.0.0.1:" + std::to_string(next_port_++);
  one.trusted = password.empty();
  if (!noise.empty()) {
    one.replies.push_back(noise);
    on_reply(made);
  }
  return made;
}

std::size_t fake_server::arrive(id which, std::string_view bytes) {
  auto const found = connections_.find(which);
  if (found == connections_.end() || found->second.killed) return 0;
  connection& one = found->second;
  one.reader.feed(bytes);
  std::size_t complete = 0;
  for (reply got; one.reader.next(got) == detail::reply_reader::result::reply; ++complete) {
    auto& words = one.commands.emplace_back();
    for (auto const& word : got.elements) words.push_back(word.text);
  }
  return complete;
}

bool fake_server::execute(id which) {
  auto const found = connections_.find(which);
  if (found == connections_.end() || found->second.killed || found->second.commands.empty()) return false;
  command const words = std::move(found->second.commands.front());
  found->second.commands.pop_front();
  answer(which, run(which, words));
  return true;
}

std::optional<std::string> fake_server::take_reply(id which) {
  auto const found = connections_.find(which);
  if (found == connections_.end() || found->second.replies.empty()) return {};
  std::string made = std::move(found->second.replies.front());
  found->second.replies.pop_front();
  return made;
}

bool fake_server::alive(id which) const {
  auto const found = connections_.find(which);
  return found != connections_.end() && !found->second.killed;
}

std::size_t fake_server::waiting(id which) const {
  auto const found = connections_.find(which);
  return found == connections_.end() ? 0 : found->second.commands.size();
}

void fake_server::leave(id which, bool lost) {
  auto const found = connections_.find(which);
  if (found == connections_.end()) return;
  found->second.left = true;
  found->second.channels.clear();
  found->second.replies.clear();
  if (lost) found->second.commands.clear();
  if (found->second.commands.empty()) connections_.erase(found);
}

std::size_t fake_server::run_left_behind() {
  std::size_t done = 0;
  for (auto it = connections_.begin(); it != connections_.end();) {
    auto const which = (it++)->first;
    if (!connections_.at(which).left) continue;
    while (execute(which)) ++done;
    connections_.erase(which);
  }
  return done;
}

void fake_server::end(id which) {
  connection& one = connections_.at(which);
  bool const left = one.left;
  one.killed = true;
  one.commands.clear();
  one.channels.clear();
  if (left)
    connections_.erase(which);
  else
    on_end(which);
}

void fake_server::answer(id which, reply const& said) {
  auto const found = connections_.find(which);
  if (found == connections_.end() || found->second.left) return;
  found->second.replies.push_back(encoded(said));
  on_reply(which);
}

// --- what befalls the server ---

void fake_server::refuse(std::string start, std::string text, int times) {
  refusals_.push_back({std::move(start), std::move(text), times});
}

void fake_server::restart(bool with_data) {
  std::vector<id> all;
  for (auto const& [which, one] : connections_) all.push_back(which);
  for (id which : all) end(which);
  if (!with_data) store.clear();
  loaded_.clear();
  next_id_ = 1;
  if (!run_id.empty()) run_id += "+";
  std::erase_if(connections_, [](auto const& one) { return one.second.left; });
}

// --- other clients ---

bool fake_server::publish(std::string_view channel, std::string_view payload) {
  if (publish_refused) return false;
  log.push_back("(publish) " + std::string(channel));
  for (auto& [which, one] : connections_)
    if (one.channels.contains(channel))
      answer(which, array({bulk("message"), bulk(std::string(channel)), bulk(std::string(payload))}));
  return true;
}

bool fake_server::stranger_takes(std::string_view key, std::string_view field, std::int64_t lease) {
  if (store.find(key) && !store.has(key, field)) return false;
  store.set(key, field, 1);
  store.expire(key, lease);
  return true;
}

bool fake_server::stranger_releases(std::string_view key, std::string_view field) {
  if (!store.has(key, field)) return false;
  store.remove(key);
  publish(channel_of(key), "0");
  return true;
}

bool fake_server::stranger_forces(std::string_view key) {
  if (!store.find(key)) return false;
  store.remove(key);
  publish(channel_of(key), "0");
  return true;
}

// --- to be looked at ---

std::size_t fake_server::ran(std::string_view start) const {
  std::size_t count = 0;
  for (auto const& line : log) count += std::string_view(line).starts_with(start);
  return count;
}

std::size_t fake_server::subscribers(std::string_view channel) const {
  std::size_t count = 0;
  for (auto const& [which, one] : connections_) count += one.channels.contains(channel);
  return count;
}

std::size_t fake_server::subscriptions() const {
  std::size_t count = 0;
  for (auto const& [which, one] : connections_) count += one.channels.size();
  return count;
}

}  // namespace latchkey::test
