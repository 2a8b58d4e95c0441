#include <wire/permit_semaphore.hpp>

#include <wire/commands.hpp>
#include <wire/kinds.hpp>
#include <wire/scripts.hpp>

namespace latchkey::detail {
namespace {

constexpr std::size_t id_size = 16;
constexpr char digits[] = "0123456789abcdef";

int value_of(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

// Every acquire has an owner number of its own, so that the id of its permit is known before it is asked for, and a
// repeated request finds what its first copy was granted.
class permit_semaphore_rules final : public counted {
 public:
  permit_semaphore_rules()
      : counted({.name = "permit_semaphore",
                 .by_id = true,
                 .hint_most = 10'000,
                 .scripts = {&permit_acquire, &permit_release, nullptr, nullptr, &permit_extend},
                 .commands = {&permit_try_release, &permit_update, &permit_try_set, &permit_set, &permit_add,
                              &permit_available, &permit_acquired}}) {}

  // The bytes of the client's UUID, and in the second half the number of the request: no two clients and no two
  // requests have the same.
  void add_field(std::string& out, std::string_view client_id, std::uint64_t owner, unsigned char) const override {
    std::string id(id_size, '\0');
    std::size_t at = 0;
    for (char const c : client_id) {
      int const value = value_of(c);
      if (value < 0 || at == 2 * id_size) continue;
      id[at / 2] = static_cast<char>(id[at / 2] | (at % 2 == 0 ? value << 4 : value));
      ++at;
    }
    for (std::size_t i = 0; i < sizeof owner; ++i)
      id[id_size - 1 - i] = static_cast<char>(id[id_size - 1 - i] ^ static_cast<char>(owner >> (8 * i)));
    out += id;
  }

  command_rules rules_of(unsigned char command) const override {
    auto const what = static_cast<permit_command>(command);
    return {.persists = what == permit_command::try_release, .shortens = what == permit_command::update};
  }

  std::uint64_t concerns(unsigned char command, std::string_view id, std::string_view client_id) const override {
    auto const what = static_cast<permit_command>(command);
    if ((what != permit_command::try_release && what != permit_command::update) || id.size() != id_size) return 0;
    std::string const base = field(client_id, 0, 0);
    constexpr std::size_t half = id_size - sizeof(std::uint64_t);
    if (id.substr(0, half) != std::string_view(base).substr(0, half)) return 0;
    std::uint64_t owner = 0;
    for (std::size_t i = half; i < id_size; ++i) owner = owner << 8 | static_cast<unsigned char>(id[i] ^ base[i]);
    return owner;
  }

  void add_keys(item const& item, words& command) const override {
    command.add_all(item.name, suffixed(item.name, "timeout"));
    if (item.what == ask::command && leaves_mark(item.command))
      command.add(mark_of(item.name, permit_id_text(item.field)));
  }

  void add_arguments(item const& item, words& command) const override {
    add_prefixed(command, "redisson_sc", item.name);
    if (item.what == ask::command) {
      return command.add_all(item.argument, item.amount, item.lease, std::int64_t{item.repeated}, mark_time);
    }
    command.add(item.field);
    if (item.what != ask::release) command.add(item.lease);
  }

  outcome read(ask what, item const& item, reply const& answer) const override {
    switch (what) {
      case ask::acquire: return unless_unseen(read_taken(answer));
      case ask::release: return read_given_back(answer);
      case ask::extend: return read_extended(answer);
      case ask::command: return item.repeated ? read_done(answer) : unless_unseen(read_done(answer));
      default: return {};
    }
  }

 private:
  // Of the others twice in a row changes no more than once.
  static bool leaves_mark(unsigned char command) {
    auto const what = static_cast<permit_command>(command);
    return what != permit_command::update && what != permit_command::available && what != permit_command::acquired;
  }

  static outcome unless_unseen(outcome made) { return made.what == outcome::type::unseen ? outcome{} : made; }

  static outcome read_extended(reply const& answer) {
    if (says(answer, verdict::extended)) return {.what = outcome::type::extended};
    auto made = read_given_back(answer);
    return made.what == outcome::type::released ? outcome{} : made;
  }
};

}  // namespace

std::string permit_id_text(std::string_view bytes) {
  std::string made;
  made.reserve(2 * bytes.size());
  for (char const c : bytes) {
    made += digits[static_cast<unsigned char>(c) >> 4];
    made += digits[static_cast<unsigned char>(c) & 0xF];
  }
  return made;
}

std::optional<std::string> permit_id_bytes(std::string_view text) {
  if (text.size() != 2 * id_size) return std::nullopt;
  std::string made;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    int const high = value_of(text[i]), low = value_of(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    made += static_cast<char>(high << 4 | low);
  }
  return made;
}

kind const& permit_semaphore_kind() { return lasting<permit_semaphore_rules>(); }

}  // namespace latchkey::detail
