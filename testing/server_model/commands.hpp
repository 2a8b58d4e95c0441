#pragma once

#include <server_model/answers.hpp>
#include <server_model/keyspace.hpp>

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace latchkey::model {

using words_view = std::span<std::string const>;

// Where PUBLISH and SPUBLISH go.
class publisher {
 public:
  virtual reply publish(std::string_view channel, std::string_view payload, bool sharded) = 0;

 protected:
  ~publisher() = default;
};

// Names of commands, lower case; of one with subcommands also `client|kill`.
using command_names = std::set<std::string, std::less<>>;

// What a command works on.
struct surroundings {
  keyspace& data;
  publisher& channels;
  command_names const& denied;  // to scripts, too
};

// One command of the modelled server. To add one: a function of a few lines and a line in the table of its file.
struct command {
  enum flag : unsigned { reads = 0, writes = 1, needs_memory = 2, grows = writes | needs_memory };

  std::string_view name;  // lower case
  int words;              // the name included; negative: at least so many
  unsigned flags;
  reply (*run)(surroundings&, words_view);

  bool takes(std::size_t given) const {
    return words >= 0 ? given == static_cast<std::size_t>(words) : given >= static_cast<std::size_t>(-words);
  }
};

// Null: the model does not know it. The case of letters does not matter.
command const* find_command(std::string_view name);
// Every command of the model.
std::vector<command> const& all_commands();

// --- for the bodies ---

using commands_view = std::span<command const>;
commands_view key_commands();
commands_view hash_commands();
commands_view list_commands();
commands_view sorted_set_commands();

std::optional<std::int64_t> integer_of(std::string_view word);
std::optional<double> score_of(std::string_view word);
std::string shown(double score);
std::string lower(std::string_view word);

// Is it this name, which is in small letters?
bool is(std::string_view word, std::string_view name);

reply wrong_number(std::string_view command);
reply wrong_type();
reply not_an_integer();
reply syntax_error();

// The value of this type under a key. Null where there is none; `refused` is set where the key holds something else.
template <class Value>
Value* look_up(surroundings& at, std::string const& key, bool& refused) {
  refused = false;
  keyspace::value* const found = at.data.find(key);
  if (!found) return nullptr;
  Value* const made = std::get_if<Value>(&found->holds);
  refused = made == nullptr;
  return made;
}

// Indexes as Redis takes them: from 0, from the end if negative; the range is cut to what is there.
bool cut_range(std::int64_t& first, std::int64_t& last, std::size_t size);

}  // namespace latchkey::model
