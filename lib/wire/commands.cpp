#include <wire/commands.hpp>
#include <wire/kind.hpp>

#include <charconv>

namespace latchkey::detail {
namespace {

outcome made_of(outcome::type what) {
  outcome made;
  made.what = what;
  return made;
}

outcome refused_by(reply const& element) {
  auto made = made_of(outcome::type::refused);
  made.text = refusal_of(element);
  return made;
}

bool is_pair(reply const& element) {
  return element.is_array() && element.elements.size() == 2 && element.elements[0].is_integer() &&
         element.elements[1].is_integer();
}

}  // namespace

std::string mark_of(std::string_view name, std::string_view request) {
  auto made = prefixed("latchkey_request", name);
  made += ':';
  made += request;
  return made;
}

outcome read_done(reply const& element) {
  if (says(element, verdict::unseen)) return made_of(outcome::type::unseen);
  if (is_refusal(element)) return refused_by(element);
  if (!is_pair(element)) return {};
  auto made = made_of(outcome::type::done);
  made.value = element.elements[0].integer;
  made.not_published = element.elements[1].integer == 0;
  return made;
}

outcome read_taken(reply const& element) {
  if (says(element, verdict::granted)) return made_of(outcome::type::granted);
  if (says(element, verdict::unseen)) return made_of(outcome::type::unseen);
  if (is_refusal(element)) return refused_by(element);
  outcome made;
  if (is_pair(element)) {
    if (!says(element.elements[0], verdict::granted) || !read_hint(element.elements[1], made.hint)) return {};
    made.what = outcome::type::granted;
    made.spent = true;
  } else if (read_hint(element, made.hint)) {
    made.what = outcome::type::busy;
  }
  return made;
}

outcome read_given_back(reply const& element) {
  if (says(element, verdict::absent)) return made_of(outcome::type::absent);
  if (is_refusal(element)) return refused_by(element);
  outcome made;
  read_released(element, made);
  return made;
}

bool says_some(std::string_view payload) {
  std::int64_t number = 0;
  auto const [end, error] = std::from_chars(payload.data(), payload.data() + payload.size(), number);
  return error == std::errc() && end == payload.data() + payload.size() && number > 0;
}

}  // namespace latchkey::detail
