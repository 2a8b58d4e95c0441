#include <wire/kinds.hpp>
#include <wire/lua.hpp>
#include <wire/reentrant_family.hpp>
#include <wire/script.hpp>
#include <wire/scripts.hpp>

namespace latchkey::detail {

namespace {

constexpr std::string_view refusal_of_value = R"lua(local function refusal(key, value)
  local holder = call('get', key)
  if type(holder) == 'table' then return holder.err end
  if holder ~= value then return -8 end
end
)lua";

}  // namespace

// GET before SET: a key of another type is an error, and a busy lock is said to be busy also when memory is short.
constinit lazy_script const plain_acquire{{"acquire", 1, 3}, {R"lua(local function acquire(key, value, _, lease)
  local holder = call('get', key)
  if type(holder) == 'table' then return holder.err end
  if not holder then
    local done = call('set', key, value, 'NX', 'PX', lease)
    if type(done) == 'table' and done.err then return done.err end
    return -3
  end
  if holder == value then
    local time = call('pexpire', key, lease)
    if type(time) == 'table' then return time.err end
    return -3
  end
  local left = call('pttl', key)
  if type(left) == 'table' then return left.err end
  return left
end
)lua"}};

// A count above 1 does not exist: whoever asks for one keeps what he has.
constinit lazy_script const plain_release{{"release", 1, 3, per_item::channel::given}, {lua::free, R"lua(
local function release(key, channel, value, target, lease)
  local holder = call('get', key)
  if type(holder) == 'table' then return holder.err end
  if not holder and target == '0' then call(publish, channel, '0') end
  if holder ~= value then return -8 end
  if target ~= '0' then
    local time = call('pexpire', key, lease)
    if type(time) == 'table' then return time.err end
    return -7
  end
  return free(key, channel)
end
)lua"}};

// PEXPIRE lets the SET behind it pass when memory is short. The old owner's release never fails for the sake of the
// new one: where the grant is refused, the lock goes free.
constinit lazy_script const plain_hand_off{{"hand_off", 1, 3, per_item::channel::given}, {lua::free, R"lua(
local function hand_off(key, channel, from, to, lease)
  local holder = call('get', key)
  if type(holder) == 'table' then return {holder.err, holder.err} end
  if holder == from then
    local done = call('pexpire', key, lease)
    local refused = type(done) == 'table' and done.err
    if not refused then
      done = call('set', key, to, 'PX', lease)
      refused = done.err
    end
    if not refused then return {-5, -3} end
    return {free(key, channel), refused}
  end
  if holder == to then
    local time = call('pexpire', key, lease)
    if type(time) == 'table' then return {-8, time.err} end
    return {-8, -3}
  end
  if not holder then
    local done = call('set', key, to, 'NX', 'PX', lease)
    if type(done) == 'table' and done.err then return {-8, done.err} end
    return {-8, -3}
  end
  local left = call('pttl', key)
  if type(left) == 'table' then left = left.err end
  return {-8, left}
end
)lua"}};

constinit lazy_script const plain_renew{{"renew", 1, 2}, {refusal_of_value, lua::renew}};
constinit lazy_script const plain_extend{{"extend", 1, 2}, {refusal_of_value, lua::extend}};

// Asks for the value first: a key that holds something else is not ours to delete.
constinit lazy_script const plain_force_unlock{{"force", 1, 0, per_item::channel::given}, {lua::free, R"lua(
local function force(key, channel)
  local holder = call('get', key)
  if type(holder) == 'table' then return holder.err end
  if not holder then return -8 end
  return free(key, channel)
end
)lua"}};

constinit lazy_script const plain_is_held_by{{R"lua(local holder = redis.pcall('get', KEYS[1])
if type(holder) == 'table' then return holder end
return holder == ARGV[1] and 1 or 0)lua"}};

constinit lazy_script const plain_rest{{R"lua(local holder = redis.pcall('get', KEYS[1])
if type(holder) == 'table' then return holder end
return holder == ARGV[1] and redis.pcall('pttl', KEYS[1]) or -2)lua"}};

namespace {

// Its requests and answers are those of a lock that is taken once; the data are a string instead of a hash.
class plain final : public taken_once {
 public:
  // Clients of this library tell each other; the others tell nobody, hence the pauses.
  plain()
      : taken_once({.name = "plain_lock",
                    .turns = true,
                    .polls = true,
                    .poll_first = 8,
                    .poll_most = 256,
                    .scripts = {&plain_acquire, &plain_release, &plain_hand_off, &plain_renew, &plain_extend,
                                &plain_force_unlock}}) {}

  std::string_view channel_prefix() const override { return "latchkey_plain__channel"; }

  // No command compares a value.
  void add_query(query what, item const& item, words& command) const override {
    if (what == query::holders) what = query::value;
    if (what == query::rest) return add_script(plain_rest().text(), item, command);
    if (!compares(what)) return taken_once::add_query(what, item, command);
    add_script(plain_is_held_by().text(), item, command);
  }

  bool read_query(query what, reply const& answer, std::int64_t& value) const override {
    return taken_once::read_query(compares(what) ? query::is_held_by : what, answer, value);
  }

 private:
  static bool compares(query what) { return what == query::is_held_by || what == query::hold_count; }
};

}  // namespace

kind const& plain_kind() { return lasting<plain>(); }

}  // namespace latchkey::detail
