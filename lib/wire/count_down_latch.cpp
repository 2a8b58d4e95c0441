#include <wire/commands.hpp>
#include <wire/kinds.hpp>
#include <wire/lua.hpp>
#include <wire/script.hpp>

namespace latchkey::detail {
namespace {

// Redisson says so when the key is deleted, but not when it goes by itself: then this is how long a waiter sleeps.
constexpr std::int64_t look_again = 5'000;

// KEYS name. No key counts as zero.
constinit lazy_script const latch_wait{{"wait", 1, 1}, {R"lua(local function wait(key, hint)
  local value = call('get', key)
  if type(value) == 'table' then return value.err end
  if not value then return -3 end
  if not string.find(value, '^-?%d+$') then return 'ERR value is not an integer or out of range' end
  return tonumber(value) > 0 and tonumber(hint) or -3
end
)lua"}};

// KEYS name, mark; ARGV channel, unused, again, keep. The DEL of the mark is there so that what follows it passes when
// memory is short: a latch must open then, too.
constinit lazy_script const latch_count_down{{"count_down", 2, 3, per_item::channel::given}, {lua::said_before, R"lua(
local function count_down(key, mark, channel, _, again, keep)
  if again == '1' then return said_before(mark) end
  local value = call('get', key)
  if type(value) == 'table' then return value.err end
  if not value then return {0, 1} end
  local done = call('del', mark)
  if type(done) ~= 'table' then done = call('set', mark, '0', 'px', keep) end
  if type(done) == 'table' and done.err then return done.err end
  local left = call('decr', key)
  if type(left) == 'table' then
    call('del', mark)
    return left.err
  end
  if left > 0 then return {0, 1} end
  call('del', key)
  if left < 0 then return {0, 1} end
  return {0, type(call(publish, channel, '0')) == 'table' and 0 or 1}
end
)lua"}};

// KEYS name, mark; ARGV channel, count, again, keep. The mark keeps the answer.
constinit lazy_script const latch_try_set{{"try_set", 2, 3, per_item::channel::given},
                                          {lua::said_before, lua::set_once, R"lua(
local function try_set(key, mark, channel, count, again, keep)
  return set_once(key, mark, channel, count, again, keep, '1')
end
)lua"}};

// Waiting is an acquire that takes nothing: what one waiter hears is true for all who wait.
class latch_rules final : public counted {
 public:
  latch_rules()
      : counted({.name = "count_down_latch",
                 .takes = false,
                 .grant_for_all = true,
                 .hint_most = look_again,
                 .scripts = {&latch_wait},
                 .commands = {&latch_count_down, &latch_try_set}}) {}

  // Braces in any case: Redisson does not look for braces in the name here.
  std::string channel(std::string_view name, std::string_view) const override {
    std::string made = "redisson_countdownlatch__channel__{";
    made += name;
    made += '}';
    return made;
  }

  command_rules rules_of(unsigned char command) const override {
    return {.persists = static_cast<latch_command>(command) == latch_command::count_down};
  }

  void add_keys(item const& item, words& command) const override {
    command.add(item.name);
    if (item.what == ask::acquire) return;
    command.add(mark_of(item.name, item.field));
  }

  void add_arguments(item const& item, words& command) const override {
    if (item.what == ask::acquire) return command.add(look_again);
    command.add_all(channel(item.name, item.field), item.amount, std::int64_t{item.repeated}, mark_time);
  }

  outcome read(ask what, item const& item, reply const& answer) const override {
    outcome made = what == ask::acquire ? read_taken(answer) : what == ask::command ? read_done(answer) : outcome{};
    bool const asked = what == ask::command && item.repeated;
    return made.what == outcome::type::unseen && !asked ? outcome{} : made;
  }

  // `0`: it reached zero; `1`: there is a new count, or none any more.
  bool wakes(std::string_view message) const override { return message == "0" || message == "1"; }
};

}  // namespace

kind const& count_down_latch_kind() { return lasting<latch_rules>(); }

}  // namespace latchkey::detail
