#include <wire/commands.hpp>
#include <wire/kind.hpp>
#include <wire/number.hpp>

namespace latchkey::detail {
namespace {

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
  if (says(element, verdict::unseen)) return {.what = outcome::type::unseen};
  if (is_refusal(element)) return refused_by(element);
  if (!is_pair(element)) return {};
  return {.what = outcome::type::done,
          .not_published = element.elements[1].integer == 0,
          .value = element.elements[0].integer};
}

outcome read_taken(reply const& element) {
  if (says(element, verdict::granted)) return {.what = outcome::type::granted};
  if (says(element, verdict::unseen)) return {.what = outcome::type::unseen};
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
  if (says(element, verdict::absent)) return {.what = outcome::type::absent};
  if (is_refusal(element)) return refused_by(element);
  outcome made;
  read_released(element, made);
  return made;
}

counted::counted(traits t)
    : kind([&t] {
        t.exclusive = t.hand_off = t.renews = false;
        t.grant_wakes_next = true;
        t.remembers = mark_time;
        return std::move(t);
      }()) {}

std::string counted::channel(std::string_view name, std::string_view) const { return prefixed("redisson_sc", name); }

bool counted::wakes(std::string_view message) const {
  std::int64_t number = 0;
  return read_number(message, number) && number > 0;
}

kind::admission counted::admit(unsigned char, int const*) const { return admission::queue; }

}  // namespace latchkey::detail
