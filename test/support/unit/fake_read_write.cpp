#include <support/unit/fake_read_write.hpp>

#include <wire/read_write_scripts.hpp>
#include <wire/verdict.hpp>

#include <algorithm>

namespace latchkey::test {

namespace {

using detail::verdict;

constexpr std::int64_t reading = 1, writing = 2;
constexpr auto wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";

reply said(verdict what) { return integer(static_cast<std::int64_t>(what)); }

// One lock and one owner of it.
struct view {
  script_world& w;
  std::string const& key;
  std::string const& field;
  fake_store& store = w.store;

  std::string stamp(std::string_view of, std::int64_t i) const {
    return "{" + key + "}:" + std::string(of) + ":rwlock_timeout:" + std::to_string(i);
  }
  void set_stamp(std::int64_t i, std::int64_t lease) const {
    store.set(stamp(field, i), "", 1);
    store.expire(stamp(field, i), lease);
  }
  std::int64_t longest_of(std::string_view of, std::int64_t count) const {
    std::int64_t most = -3;
    for (std::int64_t i = 1; i <= count; ++i) most = std::max(most, store.ttl(stamp(of, i)));
    return most;
  }
  std::int64_t longest_read(std::string_view but = {}) const {
    std::int64_t most = -3;
    for (auto const& [name, count] : store.find(key)->fields)
      if (name != "mode" && name != but) most = std::max(most, longest_of(name, count));
    return most;
  }
  std::int64_t mode() const { return store.count(key, "mode"); }
  std::int64_t count() const { return store.count(key, field); }
  void raise(std::int64_t lease) const {
    if (store.ttl(key) < lease) store.expire(key, lease);
  }
  reply free(std::string const& channel, char const* message) const {
    store.remove(key);
    return said(w.publish(channel, message) ? verdict::released : verdict::released_unpublished);
  }
};

reply acquire(view const& v, bool write, std::int64_t target, std::int64_t lease) {
  bool const there = v.store.find(v.key) != nullptr;
  std::int64_t const count = v.count();
  if (target > 1 && count == 0) return said(verdict::gone);
  if (there) {
    bool const own = v.store.has(v.key, v.field + ":write");
    bool const open = write ? v.mode() == writing && count > 0 : v.mode() == reading || (v.mode() == writing && own);
    if (!open) return integer(v.store.ttl(v.key));
  } else if (v.store.full) {
    return bulk("OOM command not allowed when used memory > 'maxmemory'.");
  } else {
    v.store.set(v.key, "mode", write ? writing : reading);
    v.store.expire(v.key, lease);
  }
  if (!write && target > 1 && count >= target) lease = std::max(lease, v.longest_of(v.field, count));
  v.store.set(v.key, v.field, target);
  v.raise(lease);
  if (!write) v.set_stamp(target, lease);
  for (std::int64_t i = target + 1; !write && i <= count; ++i) v.store.remove(v.stamp(v.field, i));
  return said(verdict::granted);
}

reply release_read(view const& v, std::string const& channel, std::int64_t target, std::int64_t lease) {
  std::int64_t const count = v.count();
  for (std::int64_t i = target + 1; i <= count; ++i) v.store.remove(v.stamp(v.field, i));
  if (target > 0) {
    v.store.set(v.key, v.field, target);
    for (std::int64_t i = 1; i <= target; ++i) v.set_stamp(i, lease);
    v.raise(lease);
    if (v.mode() == reading) v.store.expire(v.key, v.longest_read());
    return said(verdict::still_held);
  }
  std::int64_t const most = v.longest_read(v.field);
  if (v.mode() == reading && most <= 0) return v.free(channel, "0");
  v.store.find(v.key)->fields.erase(v.field);
  if (v.mode() == reading) v.store.expire(v.key, most);
  return said(verdict::released);
}

reply release_write(view const& v, std::string const& channel, std::int64_t target, std::int64_t lease) {
  if (target > 0) {
    v.store.set(v.key, v.field, target);
    v.store.expire(v.key, std::max(lease, v.longest_read(v.field)));
    return said(verdict::still_held);
  }
  if (v.store.find(v.key)->fields.size() <= 2) return v.free(channel, "1");
  v.store.find(v.key)->fields.erase(v.field);
  v.store.set(v.key, "mode", reading);
  if (std::int64_t const most = v.longest_read(); most > 0) v.store.expire(v.key, most);
  return said(v.w.publish(channel, "1") ? verdict::released : verdict::released_unpublished);
}

reply renew(view const& v, bool write, std::int64_t lease) {
  if (v.count() == 0) return said(verdict::absent);
  v.raise(lease);
  for (std::int64_t i = 1; !write && i <= v.count(); ++i)
    if (v.store.ttl(v.stamp(v.field, i)) < lease) v.set_stamp(i, lease);
  return said(verdict::extended);
}

reply extend(view const& v, bool write, std::int64_t lease) {
  if (v.count() == 0) return said(verdict::absent);
  if (write) {
    v.store.expire(v.key, std::max(lease, v.longest_read(v.field)));
    return said(verdict::extended);
  }
  v.raise(lease);
  for (std::int64_t i = 1; i <= v.count(); ++i) v.set_stamp(i, lease);
  if (v.mode() == reading) v.store.expire(v.key, v.longest_read());
  return said(verdict::extended);
}

using item_body = std::function<reply(script_world&, words_view keys, words_view arguments)>;

script_body for_each(std::size_t keys_each, std::size_t arguments_each, item_body item) {
  return [=](script_world& w, words_view keys, words_view a) {
    std::vector<reply> made;
    for (std::size_t i = 0; (i + 1) * keys_each <= keys.size(); ++i) {
      auto const own = keys.subspan(i * keys_each, keys_each);
      if (w.store.foreign.contains(own[0]))
        made.push_back(bulk(wrong_type));
      else
        made.push_back(item(w, own, a.subspan(i * arguments_each, arguments_each)));
    }
    return array(std::move(made));
  };
}

}  // namespace

void teach_read_write_lock(fake_server& server) {
  server.teach(detail::read_write_acquire(), "rw_acquire",
               for_each(1, 4, [](script_world& w, words_view k, words_view a) {
                 return acquire({w, k[0], a[1]}, a[0] == "1", std::stoll(a[2]), std::stoll(a[3]));
               }));
  server.teach(detail::read_write_release(), "rw_release",
               for_each(2, 4, [](script_world& w, words_view k, words_view a) {
                 if (!w.store.has(k[0], a[1])) return said(verdict::absent);
                 auto const body = a[0] == "1" ? release_write : release_read;
                 return body({w, k[0], a[1]}, k[1], std::stoll(a[2]), std::stoll(a[3]));
               }));
  server.teach(detail::read_write_renew(), "rw_renew", for_each(1, 3, [](script_world& w, words_view k, words_view a) {
                 return renew({w, k[0], a[1]}, a[0] == "1", std::stoll(a[2]));
               }));
  server.teach(detail::read_write_extend(), "rw_extend",
               for_each(1, 3, [](script_world& w, words_view k, words_view a) {
                 return extend({w, k[0], a[1]}, a[0] == "1", std::stoll(a[2]));
               }));
  server.teach(detail::read_write_force_unlock(), "rw_force",
               for_each(2, 1, [](script_world& w, words_view k, words_view a) {
                 view const v{w, k[0], k[0]};
                 bool const write = a[0] == "1";
                 if (v.mode() != (write ? writing : reading)) return said(verdict::absent);
                 return v.free(k[1], write ? "1" : "0");
               }));
}

}  // namespace latchkey::test
