#include <base/failures.hpp>

namespace latchkey::tool {

int code_of(error_code const& error, std::string_view words) {
  if (error.category() != error_category()) return internal_error;
  switch (static_cast<errc>(error.value())) {
    case errc::timeout:
    case errc::connect_failed:
    case errc::connection_lost:
    case errc::no_master:
    case errc::not_synced:
    case errc::closed: return unavailable;
    case errc::auth_failed:
    case errc::tls_failed: return no_permission;
    case errc::server_error:
      if (words.starts_with("NOPERM") || words.find(" NOPERM ") != words.npos) return no_permission;
      if (words.find("The user executing the script can't ") != words.npos) return no_permission;
      return lock_error(error, std::string(words)).transient() ? unavailable : refused;
    case errc::wrong_type:
    case errc::read_only:
    case errc::protocol_error:
    case errc::cross_slot: return refused;
    case errc::bad_uri: return bad_setting;
    case errc::bad_argument:
    case errc::already_held:
    case errc::would_deadlock: return wrong_usage;
    case errc::busy: return still_busy;
    case errc::lease_lost:
    case errc::not_owner: return no;
  }
  return internal_error;
}

failure failure_of(std::string_view what, error_code const& error, std::string_view words) {
  auto text = std::string(what) + ": " + error.message();
  if (!words.empty() && text.find(words) == text.npos) (text += ": ") += words;
  return {code_of(error, words), text};
}

std::string_view refusal_in(event const& what) {
  bool const tells = what.type == event_type::connect_failed || what.type == event_type::warning;
  return tells && what.error ? what.text : std::string_view();
}

failure failure_of(std::string_view what, lock_error const& error) {
  return failure_of(what, error.code(), error.server_text());
}

}  // namespace latchkey::tool
