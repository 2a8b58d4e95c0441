#include <wire/spin_scripts.hpp>

namespace latchkey::detail {

// Step by step the reentrant lock's, without PUBLISH.
script const& spin_release() {
  static script const& the_one = *new script(R"lua(local call = redis.pcall
local function release(key, field, target, lease)
  local own = call('hget', key, field)
  if type(own) == 'table' then return own.err end
  if not own then return -8 end
  if target == '0' then
    local gone = call('del', key)
    if type(gone) == 'table' then return gone.err end
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
for i = 1, #KEYS do
  local a = 3 * i
  answer[i] = release(KEYS[i], ARGV[a - 2], ARGV[a - 1], ARGV[a])
end
return answer)lua");
  return the_one;
}

script const& spin_hand_off() {
  static script const& the_one = *new script(R"lua(local call = redis.pcall
local function hand_off(key, from, to, lease)
  local own = call('hexists', key, from)
  if type(own) == 'table' then return {own.err, own.err} end
  if own == 1 then
    local done = call('pexpire', key, lease)
    if type(done) ~= 'table' then done = call('hset', key, to, '1') end
    if type(done) ~= 'table' then done = call('hdel', key, from) end
    if type(done) ~= 'table' then return {-5, -3} end
    local gone = call('del', key)
    if type(gone) == 'table' then return {gone.err, gone.err} end
    return {-5, done.err}
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
for i = 1, #KEYS do
  local a = 3 * i
  answer[i] = hand_off(KEYS[i], ARGV[a - 2], ARGV[a - 1], ARGV[a])
end
return answer)lua");
  return the_one;
}

script const& spin_force_unlock() {
  static script const& the_one = *new script(R"lua(local call = redis.pcall
local function force(key)
  local there = call('hlen', key)
  if type(there) == 'table' then return there.err end
  if there == 0 then return -8 end
  local gone = call('del', key)
  if type(gone) == 'table' then return gone.err end
  return -5
end
local answer = {}
for i = 1, #KEYS do answer[i] = force(KEYS[i]) end
return answer)lua");
  return the_one;
}

}  // namespace latchkey::detail
