#include <support/unit/fake_kinds.hpp>

#include <wire/fenced_scripts.hpp>
#include <wire/kinds.hpp>
#include <wire/plain_scripts.hpp>
#include <wire/reentrant_scripts.hpp>
#include <wire/verdict.hpp>

namespace latchkey::test {

namespace {

script_body const& body_of(detail::script const& one) { return reentrant_bodies().find(one.sha())->second; }

// The same with one key an item, and without a word to anybody.
script_body silent(script_body body) {
  return [body = std::move(body)](script_world& w, words_view keys, words_view arguments) {
    std::vector<std::string> both;
    for (auto const& key : keys) both.insert(both.end(), {key, "no channel"});
    script_world mute{w.store, [](std::string_view, std::string_view) { return true; }};
    return body(mute, both, arguments);
  };
}

bool grants(reply const& element) { return detail::says(element, detail::verdict::granted); }

reply with_token(script_world& w, std::string const& counter) {
  std::int64_t const token = w.store.count(counter, "value") + 1;
  w.store.set(counter, "value", token);
  return array({integer(static_cast<std::int64_t>(detail::verdict::granted)), bulk(std::to_string(token))});
}

// An item has one more key, the counter, and one more argument; a grant has the next token.
script_body counted(script_body body, std::size_t keys_each, std::size_t grant_at) {
  return [=](script_world& w, words_view keys, words_view arguments) {
    std::vector<reply> made;
    for (std::size_t i = 0; (i + 1) * (keys_each + 1) <= keys.size(); ++i) {
      auto const own = keys.subspan(i * (keys_each + 1), keys_each + 1);
      reply element = body(w, own.first(keys_each), arguments.subspan(4 * i, 3)).elements.at(0);
      reply& grant = element.is_array() ? element.elements.at(grant_at) : element;
      if (grants(grant)) grant = with_token(w, own.back());
      made.push_back(std::move(element));
    }
    return array(std::move(made));
  };
}

}  // namespace

void teach_spin(fake_server& server) {
  using namespace detail;
  server.teach(spin_release(), "spin_release", silent(body_of(reentrant_release())));
  server.teach(spin_hand_off(), "spin_hand_off", silent(body_of(reentrant_hand_off())));
  server.teach(spin_force_unlock(), "spin_force_unlock", silent(body_of(reentrant_force_unlock())));
}

void teach_fenced(fake_server& server) {
  using namespace detail;
  server.teach(fenced_acquire(), "fenced_acquire", counted(body_of(reentrant_acquire()), 1, 0));
  server.teach(fenced_hand_off(), "fenced_hand_off", counted(body_of(reentrant_hand_off()), 2, 1));
}

void teach_plain(fake_server& server) {
  using namespace detail;
  server.teach(plain_acquire(), "plain_acquire", body_of(reentrant_acquire()));
  server.teach(plain_release(), "plain_release", body_of(reentrant_release()));
  server.teach(plain_hand_off(), "plain_hand_off", body_of(reentrant_hand_off()));
  server.teach(plain_renew(), "plain_renew", body_of(reentrant_renew()));
  server.teach(plain_extend(), "plain_extend", body_of(reentrant_extend()));
  server.teach(plain_force_unlock(), "plain_force_unlock", body_of(reentrant_force_unlock()));
}

}  // namespace latchkey::test
