#include <support/unit/made_kind.hpp>

#include <wire/commands.hpp>
#include <wire/reentrant_scripts.hpp>
#include <wire/verdict.hpp>

#include <algorithm>

namespace latchkey::test {

using detail::ask;
using detail::verdict;

namespace {

int next_number = 0;

constexpr char const* ask_names[] = {"none",   "acquire",      "release", "hand_off", "renew",
                                     "extend", "force_unlock", "leave",   "command"};

reply says(verdict what) { return integer(static_cast<std::int64_t>(what)); }

// An item of one key (and perhaps a channel) and three arguments, as acquire and release have them.
using item_body = std::function<reply(script_world&, words_view keys, words_view arguments)>;

script_body list_of(std::size_t keys_each, std::size_t arguments_each, item_body item) {
  return [=](script_world& w, words_view keys, words_view arguments) {
    std::vector<reply> made;
    for (std::size_t i = 0; (i + 1) * keys_each <= keys.size(); ++i)
      made.push_back(
          item(w, keys.subspan(i * keys_each, keys_each), arguments.subspan(i * arguments_each, arguments_each)));
    return array(std::move(made));
  };
}

}  // namespace

made_kind::made_kind(traits t)
    : kind(t), number_(++next_number), all_text_("made " + std::to_string(number_) + " acquire_all"), all_(all_text_) {
  for (std::size_t i = 0; i < asks; ++i) {
    texts_[i] = "made " + std::to_string(number_) + " " + ask_names[i];
    scripts_[i].emplace(texts_[i]);
  }
}

made_kind::~made_kind() = default;

std::string made_kind::channel(std::string_view name, std::string_view field) const {
  std::string made = "made:" + std::string(name);
  if (rules().own_channel) made += ":" + std::string(field);
  return made;
}

void made_kind::add_field(std::string& out, std::string_view client_id, std::uint64_t owner, unsigned char mode) const {
  kind::add_field(out, client_id, owner, mode);
  if (mode == 1) out += ":write";
}

detail::script const& made_kind::script_for(ask what) const { return *scripts_[static_cast<std::size_t>(what)]; }

void made_kind::add_keys(detail::item const& one, detail::words& command) const {
  command.add(one.name);
  if (one.what == ask::leave) return;
  if (one.what == ask::release || one.what == ask::hand_off || one.what == ask::force_unlock)
    command.add(channel(one.name, one.field));
}

void made_kind::add_arguments(detail::item const& one, detail::words& command) const {
  if (one.what == ask::leave) return command.add(one.field);
  if (rules().remembers > 0) {
    command.add(one.field);
    command.add(one.amount);
    return command.add(std::int64_t{one.repeated});
  }
  detail::reentrant_kind().add_arguments(one, command);
  if (rules().own_channel && one.what == ask::acquire) command.add(one.wait);
}

detail::outcome made_kind::read(ask what, detail::item const& one, reply const& answer) const {
  if (what == ask::command) return detail::read_done(answer);
  if (what == ask::acquire && rules().remembers > 0) return detail::read_taken(answer);
  if (what != ask::leave) return detail::reentrant_kind().read(what, one, answer);
  detail::outcome made;
  made.what = detail::says(answer, verdict::released) ? detail::outcome::type::released : detail::outcome::type::absent;
  return made;
}

bool made_kind::wakes(std::string_view) const { return true; }

detail::kind::admission made_kind::admit(unsigned char mode, int const* live) const {
  if (rules().modes == 1) return live[0] > 0 ? admission::at_once : admission::queue;
  if (mode == 1 && live[1] == 0 && live[0] > 0) return admission::would_deadlock;
  return live[mode] > 0 || live[1] > 0 ? admission::at_once : admission::queue;
}

detail::script const& made_kind::command_script(unsigned char) const { return script_for(ask::command); }

detail::kind::command_rules made_kind::rules_of(unsigned char command) const {
  return {.repeats = command != 1, .persists = command == 0};
}

std::string made_kind::body_name(ask what) const {
  return "made_" + std::string(ask_names[static_cast<std::size_t>(what)]);
}

void made_kind::teach(fake_server& server) const {
  auto const& bodies = reentrant_bodies();
  for (ask what : {ask::acquire, ask::release, ask::hand_off, ask::renew, ask::extend, ask::force_unlock})
    server.teach(script_for(what), body_name(what),
                 bodies.find(detail::reentrant_kind().script_for(what).sha())->second);
  server.teach(all_, "made_acquire_all", bodies.find(detail::reentrant_acquire_all().sha())->second);
}

// Who is not kept out by `free` gets a field of its own; the key lives as long as the longest needs.
void made_kind::teach_acquire(
    fake_server& server,
    std::function<bool(script_world&, std::string const& key, std::string const& field)> free) const {
  auto const body = [free](script_world& w, words_view keys, words_view a) {
    auto const& key = keys[0];
    std::int64_t const target = std::stoll(a[1]), lease = std::stoll(a[2]);
    bool const own = w.store.has(key, a[0]);
    if (!own && target > 1) return says(verdict::gone);
    if (!own && !free(w, key, a[0])) return integer(w.store.ttl(key));
    std::int64_t const left = w.store.ttl(key);
    w.store.set(key, a[0], target);
    if (left < lease) w.store.expire(key, lease);
    return says(verdict::granted);
  };
  server.teach(script_for(ask::acquire), body_name(ask::acquire), list_of(1, 3, body));
}

void made_kind::teach_release(fake_server& server) const {
  auto const body = [](script_world& w, words_view keys, words_view a) {
    auto const& key = keys[0];
    std::int64_t const target = std::stoll(a[1]);
    if (!w.store.has(key, a[0])) return says(verdict::absent);
    if (target > 0) {
      w.store.set(key, a[0], target);
      return says(verdict::still_held);
    }
    w.store.find(key)->fields.erase(a[0]);
    if (w.store.find(key)->fields.empty()) w.store.remove(key);
    w.publish(keys[1], "0");
    return says(verdict::released);
  };
  server.teach(script_for(ask::release), body_name(ask::release), list_of(2, 3, body));
}

void made_kind::teach_shared(fake_server& server, std::size_t most) const {
  teach(server);
  teach_acquire(server, [most](script_world& w, std::string const& key, std::string const&) {
    auto const* there = w.store.find(key);
    return !there || there->fields.size() < most;
  });
  teach_release(server);
}

void made_kind::teach_read_write(fake_server& server) const {
  teach(server);
  teach_acquire(server, [](script_world& w, std::string const& key, std::string const& field) {
    auto const* there = w.store.find(key);
    if (!there) return true;
    auto const writes = [](std::string const& name) { return name.ends_with(":write"); };
    auto const owner = [&](std::string const& name) { return writes(name) ? name.substr(0, name.size() - 6) : name; };
    return std::all_of(there->fields.begin(), there->fields.end(), [&](auto const& other) {
      return owner(other.first) == owner(field) || (!writes(other.first) && !writes(field));
    });
  });
  teach_release(server);
}

void made_kind::teach_queue(fake_server& server, std::deque<std::string>& queue) const {
  teach(server);
  auto const tell_first = [this, &queue](script_world& w, std::string const& key) {
    if (!queue.empty() && !w.store.find(key)) w.publish(channel(key, queue.front()), "0");
  };
  auto const acquire = [&queue](script_world& w, words_view keys, words_view a) {
    auto const& key = keys[0];
    auto const& field = a[0];
    std::int64_t const target = std::stoll(a[1]), lease = std::stoll(a[2]);
    if (target > 1 && !w.store.has(key, field)) return says(verdict::gone);
    bool const own = w.store.has(key, field);
    bool const turn = !w.store.find(key) && (queue.empty() || queue.front() == field);
    if (!own && !turn) {
      bool const waits = std::stoll(a[3]) > 0;
      if (waits && std::find(queue.begin(), queue.end(), field) == queue.end()) queue.push_back(field);
      return integer(std::max<std::int64_t>(w.store.ttl(key), 0));
    }
    std::erase(queue, field);
    w.store.set(key, field, target);
    w.store.expire(key, lease);
    return says(verdict::granted);
  };
  auto const release = [tell_first](script_world& w, words_view keys, words_view a) {
    if (!w.store.has(keys[0], a[0])) return says(verdict::absent);
    if (std::stoll(a[1]) > 0) {
      w.store.set(keys[0], a[0], std::stoll(a[1]));
      return says(verdict::still_held);
    }
    w.store.remove(keys[0]);
    tell_first(w, keys[0]);
    return says(verdict::released);
  };
  auto const leave = [tell_first, &queue](script_world& w, words_view keys, words_view a) {
    bool const there = std::erase(queue, a[0]) > 0;
    tell_first(w, keys[0]);
    return says(there ? verdict::released : verdict::absent);
  };
  server.teach(script_for(ask::acquire), body_name(ask::acquire), list_of(1, 4, acquire));
  server.teach(script_for(ask::release), body_name(ask::release), list_of(2, 3, release));
  server.teach(script_for(ask::leave), body_name(ask::leave), list_of(1, 1, leave));
}

void made_kind::teach_places(fake_server& server) const {
  auto const remembered = [lives = rules().remembers](script_world& w, words_view a, std::int64_t taken) {
    w.store.set("mark:" + a[0], "value", taken);
    w.store.expire("mark:" + a[0], lives);
  };
  auto const seen = [](script_world& w, words_view a) { return w.store.find("mark:" + a[0]) != nullptr; };
  auto const acquire = [=](script_world& w, words_view keys, words_view a) {
    if (a[2] == "1") return says(seen(w, a) ? verdict::granted : verdict::unseen);
    std::int64_t const left = w.store.count(keys[0], "value") - std::stoll(a[1]);
    if (left < 0) return integer(1'000);
    w.store.set(keys[0], "value", left);
    remembered(w, a, std::stoll(a[1]));
    if (left == 0) return array({says(verdict::granted), integer(1'000)});
    return says(verdict::granted);
  };
  auto const give_back = [=](script_world& w, words_view keys, words_view a) {
    if (!seen(w, a)) return says(verdict::absent);
    w.store.set(keys[0], "value", w.store.count(keys[0], "value") + w.store.count("mark:" + a[0], "value"));
    w.store.remove("mark:" + a[0]);
    w.publish(keys[1], "0");
    return says(verdict::released);
  };
  auto const add = [=, this](script_world& w, words_view keys, words_view a) {
    if (a[2] == "1" && !seen(w, a)) return says(verdict::unseen);
    std::int64_t value = w.store.count(keys[0], "value");
    if (a[2] == "0") {
      w.store.set(keys[0], "value", value += std::stoll(a[1]));
      remembered(w, a, 0);
      w.publish(channel(keys[0], {}), "0");
    }
    return array({integer(value), integer(1)});
  };
  server.teach(script_for(ask::acquire), body_name(ask::acquire), list_of(1, 3, acquire));
  server.teach(script_for(ask::release), body_name(ask::release), list_of(2, 3, give_back));
  server.teach(script_for(ask::command), body_name(ask::command), list_of(1, 3, add));
}

}  // namespace latchkey::test
