#include <wire/lua.hpp>
#include <wire/script.hpp>
#include <wire/scripts.hpp>

namespace latchkey::detail {
namespace {

// A fresh key: a refused HINCRBY (memory) wrote nothing; after a refused PEXPIRE the key goes again, since a lock
// without a time to live would never end.
constexpr std::string_view acquire = R"lua(local function acquire(key, field, target, lease)
  if target == '1' then
    local there = call('exists', key)
    if there == 0 then
      local count = call('hincrby', key, field, '1')
      if type(count) == 'table' then return count.err end
      local time = call('pexpire', key, lease)
      if type(time) ~= 'table' then return -3 end
      call('del', key)
      return time.err
    end
    if type(there) == 'table' then return there.err end
  end
  local own = call('hget', key, field)
  if type(own) == 'table' then return own.err end
  if not own and target ~= '1' then return -4 end
  local left = call('pttl', key)
  if type(left) == 'table' then return left.err end
  if not own then return left end
  local timed = target == '1' or left < tonumber(lease)
  return count_to(key, field, own, target, lease, left, timed) or -3
end
)lua";

// Where the hold had ended unseen, and nobody has the lock, those who wait elsewhere still sleep by the old lease: they
// are told.
constexpr std::string_view release = R"lua(
local function release(key, channel, field, target, lease)
  local own = call('hget', key, field)
  if type(own) == 'table' then return own.err end
  if not own then
    if channel and target == '0' and call('exists', key) == 0 then call(publish, channel, '0') end
    return -8
  end
  if target == '0' then return free(key, channel) end
  local left = call('pttl', key)
  if type(left) == 'table' then return left.err end
  return count_to(key, field, own, target, lease, left, true) or -7
end
)lua";

// The old owner's release never fails for the sake of the new one: where the grant is refused, the lock goes free. What
// PEXPIRE has deleted, its time being over, and HSET has made anew, goes again: see lua::count_to.
constexpr std::string_view hand_off = R"lua(
local function hand_off(key, channel, from, to, lease)
  local own = call('hexists', key, from)
  if type(own) == 'table' then return {own.err, own.err} end
  if own == 1 then
    local done = call('pexpire', key, lease)
    if type(done) ~= 'table' then done = call('hset', key, to, '1') end
    if type(done) ~= 'table' then done = call('hdel', key, from) end
    if type(done) == 'table' then return {free(key, channel), done.err} end
    if done == 0 then call('del', key) end
    return {-5, -3}
  end
  if call('hexists', key, to) == 1 then
    local done = call('pexpire', key, lease)
    if type(done) ~= 'table' then done = call('hset', key, to, '1') end
    if type(done) == 'table' then return {-8, done.err} end
    if done == 1 then call('del', key) end
    return {-8, -3}
  end
  if call('exists', key) == 0 then
    local done = call('hset', key, to, '1')
    if type(done) == 'table' then return {-8, done.err} end
    done = call('pexpire', key, lease)
    if type(done) ~= 'table' then return {-8, -3} end
    call('del', key)
    return {-8, done.err}
  end
  local left = call('pttl', key)
  if type(left) == 'table' then left = left.err end
  return {-8, left}
end
)lua";

constexpr std::string_view refusal = R"lua(local function refusal(key, field)
  local own = call('hexists', key, field)
  if type(own) == 'table' then return own.err end
  if own == 0 then return -8 end
end
)lua";

// Asks for the length first: a key that holds something else is not ours to delete.
constexpr std::string_view force = R"lua(
local function force(key, channel)
  local there = call('hlen', key)
  if type(there) == 'table' then return there.err end
  if there == 0 then return -8 end
  return free(key, channel)
end
)lua";

}  // namespace

constinit lazy_script const reentrant_acquire{{"acquire", 1, 3}, {lua::count_to, acquire}};

// Looks at all of them before it writes to any. A write that is refused all the same (by ACL, or for want of memory)
// ends it there: what was granted before stays so and is told, and whoever asked gives it back.
constinit lazy_script const reentrant_acquire_all{{lua::call, lua::count_to, acquire, R"lua(
local function look(key, field, target)
  local own = call('hget', key, field)
  if type(own) == 'table' then return own.err end
  if own then return -10 end
  if target ~= '1' then return -4 end
  local left = call('pttl', key)
  if type(left) == 'table' then return left.err end
  return left == -2 and -10 or left
end
local answer, clear = {}, true
for i = 1, #KEYS do
  local a = 3 * i
  answer[i] = look(KEYS[i], ARGV[a - 2], ARGV[a - 1])
  clear = clear and answer[i] == -10
end
if not clear then return answer end
for i = 1, #KEYS do
  local a = 3 * i
  answer[i] = acquire(KEYS[i], ARGV[a - 2], ARGV[a - 1], ARGV[a])
  if answer[i] ~= -3 then break end
end
return answer)lua"}};

constinit lazy_script const reentrant_release{{"release", 1, 3, per_item::channel::given},
                                              {lua::free, lua::count_to, release}};
constinit lazy_script const reentrant_hand_off{{"hand_off", 1, 3, per_item::channel::given}, {lua::free, hand_off}};
constinit lazy_script const reentrant_renew{{"renew", 1, 2}, {refusal, lua::renew}};
constinit lazy_script const reentrant_extend{{"extend", 1, 2}, {refusal, lua::extend}};
constinit lazy_script const reentrant_force_unlock{{"force", 1, 0, per_item::channel::given}, {lua::free, force}};
constinit lazy_script const spin_release{{"release", 1, 3, per_item::channel::nil},
                                         {lua::free, lua::count_to, release}};
constinit lazy_script const spin_hand_off{{"hand_off", 1, 3, per_item::channel::nil}, {lua::free, hand_off}};
constinit lazy_script const spin_force_unlock{{"force", 1, 0, per_item::channel::nil}, {lua::free, force}};

}  // namespace latchkey::detail
