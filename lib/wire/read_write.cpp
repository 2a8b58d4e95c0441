#include <wire/kinds.hpp>
#include <wire/scripts.hpp>

namespace latchkey::detail {
namespace {

constexpr unsigned char read_mode = 0;
constexpr unsigned char write_mode = 1;

// Redisson's RReadWriteLock. One object for both modes: they share a key, a channel, and in a client one state for
// each owner and one queue. Answers are those of the reentrant lock.
class read_write final : public kind {
 public:
  read_write()
      : kind({.name = "read_write_lock",
              .hand_off = false,
              .turns = true,
              .turn_mode = write_mode,
              .modes = 2,
              .shared_modes = 1u << read_mode,
              .scripts = {&read_write_acquire, &read_write_release, nullptr, &read_write_renew, &read_write_extend,
                          &read_write_force_unlock}}) {}

  std::string channel(std::string_view name, std::string_view) const override {
    return prefixed("redisson_rwlock", name);
  }

  void add_field(std::string& out, std::string_view client_id, std::uint64_t owner, unsigned char mode) const override {
    kind::add_field(out, client_id, owner, mode);
    if (mode == write_mode) out += ":write";
  }

  void add_keys(item const& item, words& command) const override { command.add(item.name); }

  void add_arguments(item const& item, words& command) const override {
    if (item.what == ask::release || item.what == ask::force_unlock)
      add_prefixed(command, "redisson_rwlock", item.name);
    command.add(std::string_view(item.mode == write_mode ? "1" : "0"));
    if (item.what == ask::force_unlock) return;
    command.add(item.field);
    if (item.what == ask::acquire || item.what == ask::release) command.add(item.target);
    command.add(item.lease);
  }

  outcome read(ask what, item const& item, reply const& answer) const override {
    return what == ask::hand_off ? outcome{} : reentrant_kind().read(what, item, answer);
  }

  // Whether anybody reads cannot be asked by a plain command: who writes may read, too.
  void add_query(query what, item const& item, words& command) const override {
    if (what == query::rest) return add_script(read_write_rest, item, command);
    if (what != query::is_locked) return kind::add_query(what, item, command);
    if (item.mode == write_mode) return command.add_all("HGET", item.name, "mode");
    command.add_all("EVAL", read_write_is_read, std::int64_t{1}, item.name);
  }

  bool read_query(query what, reply const& answer, std::int64_t& value) const override {
    if (what != query::is_locked || answer.is_integer()) return kind::read_query(what, answer, value);
    value = answer.kind == reply::type::string && answer.text == "write";
    return answer.kind == reply::type::nil || value != 0 ||
           (answer.kind == reply::type::string && answer.text == "read");
  }

  // `0` of a reader, `1` of a writer. Both may let readers or a writer in.
  bool wakes(std::string_view message) const override { return message == "0" || message == "1"; }

  admission admit(unsigned char mode, int const* live) const override {
    if (live[write_mode] > 0) return admission::at_once;
    if (live[read_mode] == 0) return admission::queue;
    // He would wait for himself.
    return mode == write_mode ? admission::would_deadlock : admission::at_once;
  }
};

}  // namespace

kind const& read_write_kind() { return lasting<read_write>(); }

}  // namespace latchkey::detail
