#include <charconv>
#include <wire/fenced_scripts.hpp>
#include <wire/kinds.hpp>
#include <wire/reentrant_family.hpp>
#include <wire/verdict.hpp>

namespace latchkey::detail {
namespace {

// Digits and nothing else, as the server writes numbers, and no more than its counters hold.
bool read_token(reply const& element, std::int64_t& token) {
  if (element.kind != reply::type::string) return false;
  auto const& text = element.text;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), token);
  return error == std::errc() && end == text.data() + text.size() && token >= 0;
}

class fenced final : public reentrant_family {
 public:
  explicit fenced(bool seeded)
      : reentrant_family({.name = "fenced_lock", .parameters = seeded ? "seeded" : "", .tokens = true}),
        seeded_(seeded) {}

  script const& script_for(ask what) const override {
    if (what == ask::acquire) return fenced_acquire();
    if (what == ask::hand_off) return fenced_hand_off();
    return reentrant_family::script_for(what);
  }

  void add_keys(item const& one, words& command) const override {
    reentrant_family::add_keys(one, command);
    if (grants(one.what)) command.add(counter(one.name));
  }

  void add_arguments(item const& one, words& command) const override {
    reentrant_family::add_arguments(one, command);
    if (grants(one.what)) command.add(std::int64_t{seeded_});
  }

  void add_query(query what, item const& one, words& command) const override {
    if (what != query::token) return reentrant_family::add_query(what, one, command);
    command.add("GET");
    command.add(counter(one.name));
  }

  bool read_query(query what, reply const& answer, std::int64_t& value) const override {
    if (what != query::token) return reentrant_family::read_query(what, answer, value);
    value = 0;
    return answer.kind == reply::type::nil || read_token(answer, value);
  }

 private:
  static bool grants(ask what) { return what == ask::acquire || what == ask::hand_off; }
  static std::string counter(std::string_view name) { return prefixed("redisson_lock_token", name); }

  // A grant without a token is none.
  outcome read_grant(reply const& element) const override {
    if (says(element, verdict::granted)) return {};
    if (!element.is_array()) return reentrant_family::read_grant(element);
    outcome made;
    std::int64_t token = 0;
    if (element.elements.size() != 2 || !says(element.elements[0], verdict::granted) ||
        !read_token(element.elements[1], token) || token == 0)
      return made;
    made.what = outcome::type::granted;
    made.token = static_cast<std::uint64_t>(token);
    return made;
  }

  bool const seeded_;
};

}  // namespace

kind const& fenced_kind(bool seeded) {
  static fenced const& from_one = *new fenced(false);
  static fenced const& from_time = *new fenced(true);
  return seeded ? from_time : from_one;
}

}  // namespace latchkey::detail
