#include <support/unit/fake_permits.hpp>

#include <wire/commands.hpp>
#include <wire/kinds.hpp>
#include <wire/permit_semaphore.hpp>
#include <wire/verdict.hpp>

#include <algorithm>
#include <limits>

namespace latchkey::test {

namespace {

using detail::ask;
using detail::kind;
using detail::latch_command;
using detail::permit_command;
using detail::semaphore_command;
using detail::verdict;

constexpr std::int64_t eternal = std::numeric_limits<std::int64_t>::max();

reply spoken(verdict what) { return integer(static_cast<std::int64_t>(what)); }
reply done(std::int64_t value) { return array({integer(value), integer(1)}); }

// One item of a call: its share of the keys and arguments.
struct share {
  script_world& w;
  words_view keys;
  words_view arguments;

  std::int64_t number(std::size_t i) const { return std::stoll(arguments[i]); }
  std::int64_t value(std::string const& key) const { return w.store.count(key, "value"); }
  bool there(std::string const& key) const { return w.store.find(key) != nullptr; }
  void set(std::string const& key, std::int64_t value) const { w.store.set(key, "value", value); }
  void mark(std::string const& key, std::int64_t value) const {
    w.store.remove(key);
    set(key, value);
    w.store.expire(key, detail::mark_time);
  }
  void tell(std::string const& channel, std::int64_t what) const { w.publish(channel, std::to_string(what)); }
};

using item_body = std::function<reply(share const&)>;

script_body items(std::size_t keys_each, std::size_t arguments_each, item_body body) {
  return [=](script_world& w, words_view keys, words_view arguments) {
    std::vector<reply> made;
    for (std::size_t i = 0; (i + 1) * keys_each <= keys.size(); ++i)
      made.push_back(
          body({w, keys.subspan(i * keys_each, keys_each), arguments.subspan(i * arguments_each, arguments_each)}));
    return array(std::move(made));
  };
}

void teach(fake_server& server, kind const& which, ask what, std::string name, script_body body) {
  server.teach(which.script_for(what), std::move(name), std::move(body));
}

template <class Command>
void teach(fake_server& server, kind const& which, Command command, std::string name, script_body body) {
  server.teach(which.command_script(static_cast<unsigned char>(command)), std::move(name), std::move(body));
}

// A command with its mark as last key and `again` before the last argument: `act` runs once.
item_body once(std::size_t mark, std::size_t again, item_body act) {
  return [=](share const& s) {
    if (s.number(again) == 1) return s.there(s.keys[mark]) ? done(s.value(s.keys[mark])) : spoken(verdict::unseen);
    reply const said = act(s);
    s.mark(s.keys[mark], said.elements[0].integer);
    return said;
  };
}

reply semaphore_acquire(share const& s) {
  auto const &key = s.keys[0], &claim = s.keys[2], &client = s.arguments[0];
  std::int64_t const wanted = s.number(1);
  if (s.number(3) == 1) return spoken(s.there(s.keys[3]) ? verdict::granted : verdict::unseen);
  std::int64_t others = 0;
  if (auto const* claims = s.w.store.find(claim))
    for (auto const& [who, n] : claims->fields)
      if (who != client) others = n;
  if (s.value(key) - others < wanted) {
    if (s.number(2) != 1 || wanted == 1 || others > 0) return integer(others > 0 ? 1'000 : 10'000);
    s.w.store.set(claim, client, wanted);
    s.w.store.expire(claim, 2'000);
    return integer(1'000);
  }
  std::int64_t const left = s.value(key) - wanted;
  s.set(key, left);
  s.mark(s.keys[3], wanted);
  if (others == 0 && s.w.store.remove(claim) && left > 0) s.tell(s.keys[1], left);
  return left > others ? spoken(verdict::granted) : array({spoken(verdict::granted), integer(1'000)});
}

reply semaphore_give_back(share const& s) {
  if (!s.there(s.keys[2])) return spoken(verdict::absent);
  s.set(s.keys[0], s.value(s.keys[0]) + s.value(s.keys[2]));
  s.w.store.remove(s.keys[2]);
  s.tell(s.keys[1], s.value(s.keys[0]));
  return spoken(verdict::released);
}

reply semaphore_release(share const& s) {
  s.set(s.keys[0], s.value(s.keys[0]) + s.number(0));
  s.tell(s.keys[1], s.value(s.keys[0]));
  return done(0);
}

// Permits whose time is over return.
void reap(share const& s) {
  auto* const set = s.w.store.find(s.keys[1]);
  if (!set) return;
  std::int64_t const now = std::chrono::floor<milliseconds>(s.w.store.now().time_since_epoch()).count();
  auto const ended = std::erase_if(set->fields, [&](auto const& one) { return one.second <= now; });
  if (ended == 0) return;
  s.set(s.keys[0], s.value(s.keys[0]) + static_cast<std::int64_t>(ended));
  s.tell(s.keys[2], s.value(s.keys[0]));
}

std::int64_t end_of(share const& s, std::int64_t lease) {
  std::int64_t const now = std::chrono::floor<milliseconds>(s.w.store.now().time_since_epoch()).count();
  return lease == 0 ? eternal : now + lease;
}

reply permit_acquire(share const& s) {
  reap(s);
  auto const id = detail::permit_id_text(s.arguments[0]);
  bool const own = s.w.store.has(s.keys[1], id);
  if (!own && s.value(s.keys[0]) < 1) {
    std::int64_t hint = 10'000;
    if (auto const* set = s.w.store.find(s.keys[1]))
      for (auto const& [other, end] : set->fields)
        if (end != eternal) hint = std::min(hint, end - end_of(s, 1) + 1);
    return integer(std::max<std::int64_t>(hint, 1));
  }
  if (!own) s.set(s.keys[0], s.value(s.keys[0]) - 1);
  s.w.store.set(s.keys[1], id, end_of(s, s.number(1)));
  return spoken(verdict::granted);
}

bool permit_given_back(share const& s, std::string const& bytes) {
  reap(s);
  auto* const set = s.w.store.find(s.keys[1]);
  if (!set || set->fields.erase(detail::permit_id_text(bytes)) == 0) return false;
  s.set(s.keys[0], s.value(s.keys[0]) + 1);
  s.tell(s.keys[2], s.value(s.keys[0]));
  return true;
}

reply latch_count_down(share const& s) {
  if (!s.there(s.keys[0])) return done(0);
  s.set(s.keys[0], s.value(s.keys[0]) - 1);
  if (s.value(s.keys[0]) > 0) return done(0);
  s.w.store.remove(s.keys[0]);
  s.w.publish(s.keys[1], "0");
  return done(0);
}

}  // namespace

void teach_semaphore(fake_server& server) {
  auto const& which = detail::semaphore_kind();
  teach(server, which, ask::acquire, "take", items(4, 5, semaphore_acquire));
  teach(server, which, ask::release, "give_back", items(3, 1, semaphore_give_back));
  teach(server, which, semaphore_command::release, "add", items(3, 3, once(2, 1, semaphore_release)));
}

void teach_permit_semaphore(fake_server& server) {
  auto const& which = detail::permit_semaphore_kind();
  teach(server, which, ask::acquire, "take", items(4, 2, permit_acquire));
  teach(server, which, ask::release, "give_back", items(4, 1, [](share const& s) {
          return spoken(permit_given_back(s, s.arguments[0]) ? verdict::released : verdict::absent);
        }));
  teach(server, which, ask::extend, "extend", items(4, 2, [](share const& s) {
          reap(s);
          auto const id = detail::permit_id_text(s.arguments[0]);
          if (!s.w.store.has(s.keys[1], id)) return spoken(verdict::absent);
          s.w.store.set(s.keys[1], id, end_of(s, s.number(1)));
          return spoken(verdict::extended);
        }));
  teach(server, which, permit_command::update, "update", items(4, 5, [](share const& s) {
          reap(s);
          auto const id = detail::permit_id_text(s.arguments[0]);
          if (!s.w.store.has(s.keys[1], id)) return done(0);
          s.w.store.set(s.keys[1], id, end_of(s, s.number(2)));
          return done(1);
        }));
  teach(server, which, permit_command::try_release, "try_release",
        items(4, 5, once(3, 3, [](share const& s) { return done(permit_given_back(s, s.arguments[0])); })));
}

void teach_latch(fake_server& server) {
  auto const& which = detail::count_down_latch_kind();
  teach(server, which, ask::acquire, "look", items(1, 1, [](share const& s) {
          return s.value(s.keys[0]) > 0 ? integer(s.number(0)) : spoken(verdict::granted);
        }));
  teach(server, which, latch_command::count_down, "count_down", items(3, 3, once(2, 1, latch_count_down)));
}

}  // namespace latchkey::test
