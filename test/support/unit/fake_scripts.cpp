#include <support/unit/fake_scripts.hpp>

#include <wire/reentrant_scripts.hpp>
#include <wire/verdict.hpp>

#include <algorithm>

namespace latchkey::test {

using detail::verdict;

reply integer(std::int64_t value) {
  reply made;
  made.kind = reply::type::integer;
  made.integer = value;
  return made;
}

namespace {

reply worded(reply::type kind, std::string text) {
  reply made;
  made.kind = kind;
  made.text = std::move(text);
  return made;
}

reply says(verdict what) { return integer(static_cast<std::int64_t>(what)); }

constexpr auto wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
constexpr auto no_memory = "OOM command not allowed when used memory > 'maxmemory'.";

reply acquire(script_world& w, std::string const& key, words_view a) {
  auto const& field = a[0];
  std::int64_t const target = std::stoll(a[1]), lease = std::stoll(a[2]);
  if (w.store.foreign.contains(key)) return bulk(wrong_type);
  if (target == 1 && !w.store.find(key)) {
    if (w.store.full) return bulk(no_memory);
    w.store.set(key, field, 1);
    w.store.expire(key, lease);
    return says(verdict::granted);
  }
  if (!w.store.has(key, field)) return target > 1 ? says(verdict::gone) : integer(w.store.ttl(key));
  if (target == 1 || w.store.ttl(key) < lease) w.store.expire(key, lease);
  w.store.set(key, field, target);
  return says(verdict::granted);
}

// Acquires all or none.
reply acquire_all(script_world& w, words_view keys, words_view a) {
  std::vector<reply> made(keys.size(), says(verdict::untried));
  bool clear = true;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    auto const &key = keys[i], &field = a[3 * i];
    if (w.store.foreign.contains(key))
      made[i] = bulk(wrong_type);
    else if (!w.store.has(key, field) && std::stoll(a[3 * i + 1]) > 1)
      made[i] = says(verdict::gone);
    else if (!w.store.has(key, field) && w.store.find(key))
      made[i] = integer(w.store.ttl(key));
    else
      continue;
    clear = false;
  }
  for (std::size_t i = 0; clear && i < keys.size(); ++i) {
    made[i] = acquire(w, keys[i], a.subspan(3 * i, 3));
    clear = detail::says(made[i], verdict::granted);
  }
  return array(std::move(made));
}

verdict free_and_tell(script_world& w, std::string const& key, std::string const& channel) {
  w.store.remove(key);
  return w.publish(channel, "0") ? verdict::released : verdict::released_unpublished;
}

reply release(script_world& w, std::string const& key, std::string const& channel, words_view a) {
  auto const& field = a[0];
  std::int64_t const target = std::stoll(a[1]), lease = std::stoll(a[2]);
  if (w.store.foreign.contains(key)) return bulk(wrong_type);
  if (!w.store.has(key, field)) {
    if (target == 0 && !w.store.find(key)) w.publish(channel, "0");
    return says(verdict::absent);
  }
  if (target == 0) return says(free_and_tell(w, key, channel));
  w.store.expire(key, lease);
  w.store.set(key, field, target);
  return says(verdict::still_held);
}

reply hand_off(script_world& w, std::string const& key, words_view a) {
  auto const &from = a[0], &to = a[1];
  std::int64_t const lease = std::stoll(a[2]);
  if (w.store.foreign.contains(key)) return array({bulk(wrong_type), bulk(wrong_type)});
  auto const grant = [&] {
    w.store.set(key, to, 1);
    w.store.expire(key, lease);
  };
  if (w.store.has(key, from)) {
    grant();
    w.store.find(key)->fields.erase(from);
    return array({says(verdict::released), says(verdict::granted)});
  }
  if (w.store.has(key, to)) {
    grant();
    return array({says(verdict::absent), says(verdict::granted)});
  }
  if (w.store.find(key)) return array({says(verdict::absent), integer(w.store.ttl(key))});
  if (w.store.full) return array({says(verdict::absent), bulk(no_memory)});
  grant();
  return array({says(verdict::absent), says(verdict::granted)});
}

reply renew(script_world& w, std::string const& key, words_view a) {
  if (!w.store.has(key, a[0])) return says(verdict::absent);
  std::int64_t const lease = std::stoll(a[1]);
  if (w.store.ttl(key) < lease) w.store.expire(key, lease);
  return says(verdict::extended);
}

reply extend(script_world& w, std::string const& key, words_view a) {
  if (!w.store.has(key, a[0])) return says(verdict::absent);
  w.store.expire(key, std::stoll(a[1]));
  return says(verdict::extended);
}

reply force_unlock(script_world& w, std::string const& key, std::string const& channel) {
  if (w.store.foreign.contains(key)) return bulk(wrong_type);
  return w.store.find(key) ? says(free_and_tell(w, key, channel)) : says(verdict::absent);
}

// One element per item: `per_item` of them, each with its share of the keys and arguments.
template <class Item>
script_body list_of(std::size_t keys_each, std::size_t arguments_each, Item item) {
  return [=](script_world& w, words_view keys, words_view arguments) {
    std::vector<reply> made;
    for (std::size_t i = 0; (i + 1) * keys_each <= keys.size(); ++i)
      made.push_back(
          item(w, keys.subspan(i * keys_each, keys_each), arguments.subspan(i * arguments_each, arguments_each)));
    return array(std::move(made));
  };
}

}  // namespace

reply error(std::string text) { return worded(reply::type::error, std::move(text)); }
reply bulk(std::string text) { return worded(reply::type::string, std::move(text)); }
reply status(std::string text) { return worded(reply::type::status, std::move(text)); }

reply array(std::vector<reply> elements) {
  reply made;
  made.kind = reply::type::array;
  made.elements = std::move(elements);
  return made;
}

std::map<std::string, script_body, std::less<>> const& reentrant_bodies() {
  using w = script_world;
  using v = words_view;
  static std::map<std::string, script_body, std::less<>> const bodies = {
      {std::string(detail::reentrant_acquire().sha()),
       list_of(1, 3, [](w& s, v k, v a) { return acquire(s, k[0], a); })},
      {std::string(detail::reentrant_acquire_all().sha()), acquire_all},
      {std::string(detail::reentrant_release().sha()),
       list_of(2, 3, [](w& s, v k, v a) { return release(s, k[0], k[1], a); })},
      {std::string(detail::reentrant_hand_off().sha()),
       list_of(2, 3, [](w& s, v k, v a) { return hand_off(s, k[0], a); })},
      {std::string(detail::reentrant_renew().sha()), list_of(1, 2, [](w& s, v k, v a) { return renew(s, k[0], a); })},
      {std::string(detail::reentrant_extend().sha()), list_of(1, 2, [](w& s, v k, v a) { return extend(s, k[0], a); })},
      {std::string(detail::reentrant_force_unlock().sha()),
       list_of(2, 0, [](w& s, v k, v) { return force_unlock(s, k[0], k[1]); })},
  };
  return bodies;
}

}  // namespace latchkey::test
