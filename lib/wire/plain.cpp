#include <wire/kinds.hpp>
#include <wire/plain_scripts.hpp>
#include <wire/reentrant_family.hpp>

namespace latchkey::detail {
namespace {

// Its requests and answers are those of a lock that is taken once; the data are a string instead of a hash.
class plain final : public taken_once {
 public:
  // Clients of this library tell each other; the others tell nobody, hence the pauses.
  plain() : taken_once({.name = "plain_lock", .turns = true, .polls = true, .poll_first = 8, .poll_most = 256}) {}

  std::string_view channel_prefix() const override { return "latchkey_plain__channel"; }

  script const& script_for(ask what) const override {
    switch (what) {
      case ask::acquire: return plain_acquire();
      case ask::release: return plain_release();
      case ask::hand_off: return plain_hand_off();
      case ask::renew: return plain_renew();
      case ask::extend: return plain_extend();
      case ask::force_unlock: return plain_force_unlock();
      default: return taken_once::script_for(what);
    }
  }

  // No command compares a value.
  void add_query(query what, item const& one, words& command) const override {
    if (what == query::holders) what = query::value;
    if (what == query::rest) return add_script(plain_rest().text(), one, command);
    if (!compares(what)) return taken_once::add_query(what, one, command);
    add_script(plain_is_held_by().text(), one, command);
  }

  bool read_query(query what, reply const& answer, std::int64_t& value) const override {
    return taken_once::read_query(compares(what) ? query::is_held_by : what, answer, value);
  }

 private:
  static bool compares(query what) { return what == query::is_held_by || what == query::hold_count; }
};

}  // namespace

kind const& plain_kind() {
  static plain const& the_one = *new plain;
  return the_one;
}

}  // namespace latchkey::detail
