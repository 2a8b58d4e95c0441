#include <string>
#include <wire/reentrant_scripts.hpp>

namespace latchkey::detail {

// The scripts are never destroyed: a client of static storage may still release while the process exits.

namespace {

// A fresh key: a refused HINCRBY (memory) wrote nothing; after a refused PEXPIRE the key goes again, since a lock
// without a time to live would never end.
//
// The owner's own key: the time first, since PEXPIRE works when memory is short and lets the HINCRBY behind it
// pass. A count that is no number refuses the HINCRBY, which the time to live is not to outlast. Lua counts
// exactly up to 2^53 only; beyond, the empty increment makes the server refuse.
constexpr char acquire_function[] = R"lua(local call = redis.pcall
local function acquire(key, field, target, lease)
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
  if timed then
    local time = call('pexpire', key, lease)
    if type(time) == 'table' then return time.err end
  end
  local count, step = tonumber(own), 0
  if count then step = math.abs(count) < 1e15 and target - count or '' end
  local done = call('hincrby', key, field, step)
  if type(done) ~= 'table' then return -3 end
  if timed then
    if left < 0 then call('persist', key) else call('pexpire', key, left) end
  end
  return done.err
end
)lua";

script const& with_acquire(std::string_view rest) { return *new script(std::string(acquire_function).append(rest)); }

}  // namespace

script const& reentrant_acquire() {
  static script const& the_one = with_acquire(R"lua(local answer = {}
for i = 1, #KEYS do
  local a = 3 * i
  answer[i] = acquire(KEYS[i], ARGV[a - 2], ARGV[a - 1], ARGV[a])
end
return answer)lua");
  return the_one;
}

// Looks at all of them before it writes to any. A write that is refused all the same (by ACL, or for want of memory)
// ends it there: what was granted before stays so and is told, and whoever asked gives it back.
script const& reentrant_acquire_all() {
  static script const& the_one = with_acquire(R"lua(local function look(key, field, target)
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
return answer)lua");
  return the_one;
}

// DEL and PEXPIRE work when memory is short, and a HINCRBY behind a PEXPIRE does too. A refused PUBLISH comes after
// the lock is free: it is told apart, not taken for a failure.
script const& reentrant_release() {
  static script const& the_one = *new script(R"lua(local call = redis.pcall
local function release(key, channel, field, target, lease)
  local own = call('hget', key, field)
  if type(own) == 'table' then return own.err end
  if not own then return -8 end
  if target == '0' then
    local gone = call('del', key)
    if type(gone) == 'table' then return gone.err end
    if type(call('publish', channel, '0')) == 'table' then return -6 end
    return -5
  end
  local left = call('pttl', key)
  if type(left) == 'table' then return left.err end
  local time = call('pexpire', key, lease)
  if type(time) == 'table' then return time.err end
  local count, step = tonumber(own), 0
  if count then step = math.abs(count) < 1e15 and target - count or '' end
  local done = call('hincrby', key, field, step)
  if type(done) ~= 'table' then return -7 end
  if left < 0 then call('persist', key) else call('pexpire', key, left) end
  return done.err
end
local answer = {}
for i = 1, #KEYS / 2 do
  local k, a = 2 * i, 3 * i
  answer[i] = release(KEYS[k - 1], KEYS[k], ARGV[a - 2], ARGV[a - 1], ARGV[a])
end
return answer)lua");
  return the_one;
}

// The old owner's release never fails for the sake of the new one: where the grant is refused, the lock goes free.
script const& reentrant_hand_off() {
  static script const& the_one = *new script(R"lua(local call = redis.pcall
local function free(key, channel, why)
  local gone = call('del', key)
  if type(gone) == 'table' then return {gone.err, gone.err} end
  if type(call('publish', channel, '0')) == 'table' then return {-6, why} end
  return {-5, why}
end
local function hand_off(key, channel, from, to, lease)
  local own = call('hexists', key, from)
  if type(own) == 'table' then return {own.err, own.err} end
  if own == 1 then
    local done = call('pexpire', key, lease)
    if type(done) ~= 'table' then done = call('hset', key, to, '1') end
    if type(done) ~= 'table' then done = call('hdel', key, from) end
    if type(done) == 'table' then return free(key, channel, done.err) end
    return {-5, -3}
  end
  if call('hexists', key, to) == 1 then
    local done = call('pexpire', key, lease)
    if type(done) ~= 'table' then done = call('hset', key, to, '1') end
    if type(done) == 'table' then return {-8, done.err} end
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
local answer = {}
for i = 1, #KEYS / 2 do
  local k, a = 2 * i, 3 * i
  answer[i] = hand_off(KEYS[k - 1], KEYS[k], ARGV[a - 2], ARGV[a - 1], ARGV[a])
end
return answer)lua");
  return the_one;
}

// Only raises, and by comparison: PEXPIRE GT is not known to Redis 6.2. A key that lost its time to live is less.
script const& reentrant_renew() {
  static script const& the_one = *new script(R"lua(local call = redis.pcall
local function renew(key, field, lease)
  local own = call('hexists', key, field)
  if type(own) == 'table' then return own.err end
  if own == 0 then return -8 end
  local left = call('pttl', key)
  if type(left) == 'table' then return left.err end
  if left < tonumber(lease) then
    local time = call('pexpire', key, lease)
    if type(time) == 'table' then return time.err end
  end
  return -9
end
local answer = {}
for i = 1, #KEYS do answer[i] = renew(KEYS[i], ARGV[2 * i - 1], ARGV[2 * i]) end
return answer)lua");
  return the_one;
}

script const& reentrant_extend() {
  static script const& the_one = *new script(R"lua(local call = redis.pcall
local function extend(key, field, lease)
  local own = call('hexists', key, field)
  if type(own) == 'table' then return own.err end
  if own == 0 then return -8 end
  local time = call('pexpire', key, lease)
  if type(time) == 'table' then return time.err end
  return -9
end
local answer = {}
for i = 1, #KEYS do answer[i] = extend(KEYS[i], ARGV[2 * i - 1], ARGV[2 * i]) end
return answer)lua");
  return the_one;
}

// Asks for the length first: a key that holds something else is not ours to delete.
script const& reentrant_force_unlock() {
  static script const& the_one = *new script(R"lua(local call = redis.pcall
local function force(key, channel)
  local there = call('hlen', key)
  if type(there) == 'table' then return there.err end
  if there == 0 then return -8 end
  local gone = call('del', key)
  if type(gone) == 'table' then return gone.err end
  if type(call('publish', channel, '0')) == 'table' then return -6 end
  return -5
end
local answer = {}
for i = 1, #KEYS / 2 do answer[i] = force(KEYS[2 * i - 1], KEYS[2 * i]) end
return answer)lua");
  return the_one;
}

}  // namespace latchkey::detail
