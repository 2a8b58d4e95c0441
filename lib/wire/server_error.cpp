#include <base/server_words.hpp>
#include <wire/server_error.hpp>

namespace latchkey::detail {
namespace {

struct known {
  std::string_view start;  // a code; where it ends with a blank, the start of a phrase
  errc code;
  server_error::ran executed;
  bool reconnect = false;
};

constexpr auto nothing_ran = server_error::ran::no;
constexpr auto may_have_run = server_error::ran::unknown;

// The server says these before it executes anything. Our scripts catch the errors of the calls inside them, so an
// error of a whole call is never the end of a script that ran half way.
constexpr known codes[] = {
    {"NOSCRIPT", errc::server_error, nothing_ran},
    {"LOADING", errc::server_error, nothing_ran},
    {"BUSY", errc::server_error, nothing_ran},
    {"READONLY", errc::read_only, nothing_ran, true},
    {"MASTERDOWN", errc::server_error, nothing_ran, true},
    {"NOREPLICAS", errc::server_error, nothing_ran},
    {"MISCONF", errc::server_error, nothing_ran},
    {"OOM", errc::server_error, nothing_ran},
    {"NOAUTH", errc::auth_failed, nothing_ran},
    {"WRONGPASS", errc::auth_failed, nothing_ran},
    {"NOPERM", errc::server_error, nothing_ran},
    {"DENIED", errc::server_error, nothing_ran},
    {"MOVED", errc::server_error, nothing_ran},
    {"ASK", errc::server_error, nothing_ran},
    {"TRYAGAIN", errc::server_error, nothing_ran},
    {"CLUSTERDOWN", errc::server_error, nothing_ran},
    {"CROSSSLOT", errc::cross_slot, nothing_ran},
    {"WRONGTYPE", errc::wrong_type, may_have_run},
};

// Texts without a code of their own.
constexpr known phrases[] = {
    {"ERR max number of clients", errc::server_error, nothing_ran},
    {"ERR unknown command", errc::server_error, nothing_ran},
    {"ERR invalid password", errc::auth_failed, nothing_ran},
    {"ERR Client sent AUTH", errc::auth_failed, nothing_ran},
    {"ERR AUTH ", errc::auth_failed, nothing_ran},
    {"ERR DB index is out of range", errc::auth_failed, nothing_ran},
    {"ERR invalid DB index", errc::auth_failed, nothing_ran},
};

known const* find(std::string_view text) {
  auto const word = first_word(text);
  for (auto const& known : codes)
    if (known.start == word) return &known;
  for (auto const& known : phrases)
    if (text.starts_with(known.start)) return &known;
  return nullptr;
}

}  // namespace

server_error classify(std::string_view text) {
  text = without_place(text);
  server_error made;
  made.transient = passes_by_itself(text);
  made.no_script = first_word(text) == "NOSCRIPT";
  if (auto const* known = find(text)) {
    made.code = known->code;
    made.executed = known->executed;
    made.reconnect = known->reconnect;
    made.transient = made.transient || made.code == errc::read_only;
  }
  if (names_key_elsewhere(text)) made.executed = server_error::ran::no;  // of one item: docs/safety.md, F9
  // Said by a call inside a script, whose earlier calls may have done something.
  if (text.find(" script: ") != text.npos && !made.no_script) made.executed = server_error::ran::unknown;
  return made;
}

errc error_of(outcome const& answer) {
  return answer.what == outcome::type::refused ? classify(answer.text).code : errc::server_error;
}

std::string_view words_of(outcome const& answer) {
  return answer.text.empty() ? std::string_view("an answer of unexpected form") : std::string_view(answer.text);
}

}  // namespace latchkey::detail
