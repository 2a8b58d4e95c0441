#include <api/adoption.hpp>
#include <api/single_lock.hpp>
#include <latchkey/error.hpp>
#include <latchkey/owner.hpp>
#include <wire/hold_token.hpp>
#include <wire/kinds.hpp>

#include <charconv>

namespace latchkey::detail {

namespace {

struct word_of_kind {
  std::string_view word;
  std::string_view name;  // kind::traits
  unsigned char mode;
  kind const& (*which)(core const&);
};

constexpr word_of_kind all_words[] = {
    {"lock", "lock", 0, [](core const&) -> kind const& { return reentrant_kind(); }},
    {"fair", "fair_lock", 0, [](core const&) -> kind const& { return fair_kind(); }},
    {"fenced", "fenced_lock", 0,
     [](core const& of) -> kind const& { return fenced_kind(of.settings().seed_fencing_token); }},
    {"spin", "spin_lock", 0, [](core const&) -> kind const& { return spin_kind(); }},
    {"plain", "plain_lock", 0, [](core const&) -> kind const& { return plain_kind(); }},
    {"non-reentrant", "non_reentrant_lock", 0, [](core const&) -> kind const& { return non_reentrant_kind(); }},
    {"read", "read_write_lock", 0, [](core const&) -> kind const& { return read_write_kind(); }},
    {"write", "read_write_lock", 1, [](core const&) -> kind const& { return read_write_kind(); }},
};

constexpr std::size_t longest_name = 64 * 1'024;

}  // namespace

std::string adoption::shown() const {
  return key->which->field(client ? *client : key->engine->id(), field, key->mode);
}

adoption read_adoption(std::shared_ptr<core> const& engine, std::string_view token) {
  auto hold = read_token(token);
  if (!hold || hold->name.size() > longest_name)
    throw lock_error(errc::bad_argument, "that is not the token of a hold on one lock");
  for (auto const& one : all_words) {
    if (one.word != hold->kind) continue;
    auto key = std::make_shared<single_lock const>(engine, std::move(hold->name), one.which(*engine), one.mode);
    if (hold->client == engine->id()) return {std::move(key), hold->owner, hold->owner, nullptr, hold->fence};
    auto client = std::make_shared<std::string const>(std::move(hold->client));
    return {std::move(key), owner_access::number(owner::make()), hold->owner, std::move(client), hold->fence};
  }
  throw lock_error(errc::bad_argument, "a token of the kind '" + hold->kind + "' cannot be adopted");
}

std::string token_of(lock_key const& key, std::string_view owner, std::uint64_t fence) {
  hold_token hold{.name = key.name, .fence = fence};
  for (auto const& one : all_words)
    if (one.name == key.which->rules().name && one.mode == key.mode) hold.kind = one.word;
  auto const colon = owner.rfind(':');
  hold.client = owner.substr(0, colon);
  std::from_chars(owner.data() + colon + 1, owner.data() + owner.size(), hold.owner);
  return write_token(hold);
}

}  // namespace latchkey::detail
