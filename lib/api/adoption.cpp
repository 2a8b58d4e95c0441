#include <api/adoption.hpp>
#include <api/single_lock.hpp>
#include <latchkey/detail/hold_token.hpp>
#include <latchkey/error.hpp>
#include <latchkey/owner.hpp>
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

constexpr std::size_t longest_adopted_name = 64 * 1'024;

// `uuid:number`.
bool has_number(hold_token const& hold, std::uint64_t& number) {
  auto const colon = hold.owner.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  auto const* const end = hold.owner.data() + hold.owner.size();
  auto const read = std::from_chars(hold.owner.data() + colon + 1, end, number);
  return read.ec == std::errc() && read.ptr == end;
}

}  // namespace

std::string adoption::shown() const {
  return key->which->field(client ? *client : key->engine->id(), field, key->mode);
}

adoption read_adoption(std::shared_ptr<core> const& engine, std::string_view token) {
  auto hold = read_token(token);
  std::uint64_t number = 0;
  auto const colon = hold ? hold->owner.rfind(':') : std::string::npos;
  if (!hold || hold->names.size() != 1 || hold->names.front().size() > longest_adopted_name ||
      !has_number(*hold, number))
    throw lock_error(errc::bad_argument, "that is not the token of a hold on one lock");
  for (auto const& one : all_words) {
    if (one.word != hold->kind) continue;
    auto key =
        std::make_shared<single_lock const>(engine, std::move(hold->names.front()), one.which(*engine), one.mode);
    auto const fence = hold->fence.value_or(0);
    hold->owner.resize(colon);
    if (hold->owner == engine->id()) return {std::move(key), number, number, nullptr, fence};
    auto client = std::make_shared<std::string const>(std::move(hold->owner));
    return {std::move(key), owner_access::number(owner::make()), number, std::move(client), fence};
  }
  throw lock_error(errc::bad_argument, "a token of the kind '" + hold->kind + "' cannot be adopted");
}

std::string token_of(lock_key const& key, std::string owner, std::uint64_t fence) {
  hold_token hold{.names = {key.name}, .owner = std::move(owner)};
  for (auto const& one : all_words)
    if (one.name == key.which->rules().name && one.mode == key.mode) hold.kind = one.word;
  if (fence != 0) hold.fence = fence;
  return write_token(hold);
}

}  // namespace latchkey::detail
