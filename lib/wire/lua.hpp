#pragma once

#include <string_view>

// Lua that the scripts of several kinds are made of. A refusal is a value that the script looks at, never an error.
namespace latchkey::detail::lua {

// What the scripts begin with. Every call is a pcall.
inline constexpr std::string_view call = "local call = redis.pcall\n";

// free(key, channel), of scripts with a channel or nil for it: deletes the key and tells so; answers a verdict, or the
// words of an error. DEL works when memory is short. A refused PUBLISH comes after the lock is free: it is told apart,
// not taken for a failure.
inline constexpr std::string_view free = R"lua(local function free(key, channel)
  local gone = call('del', key)
  if type(gone) == 'table' then return gone.err end
  if not channel then return -5 end
  local heard = call(publish, channel, '0')
  if type(heard) == 'table' then return -6 end
  return heard > 0 and -1000 - heard or -5
end
)lua";

// count_to(key, field, own, target, lease, left, timed): makes the count of a hold, which is `own`, the target. With
// `timed` the key lives for the lease. Answers nothing, or the words of an error. The time first, since PEXPIRE works
// when memory is short and lets the HINCRBY behind it pass. A count that is no number refuses the HINCRBY, which the
// time to live is not to outlast. Lua counts exactly up to 2^53 only; beyond, the empty increment makes the server
// refuse. A PEXPIRE of few milliseconds may find that they are over, and deletes the key: what the HINCRBY then makes
// anew has no time to live, and is another number.
inline constexpr std::string_view count_to = R"lua(
local function count_to(key, field, own, target, lease, left, timed)
  if timed then
    local time = call('pexpire', key, lease)
    if type(time) == 'table' then return time.err end
  end
  local count, step = tonumber(own), 0
  if count then step = math.abs(count) < 1e15 and target - count or '' end
  local done = call('hincrby', key, field, step)
  if type(done) ~= 'table' then
    if done ~= tonumber(target) then call('del', key) end
    return
  end
  if timed then
    if left < 0 then call('persist', key) else call('pexpire', key, left) end
  end
  return done.err
end
)lua";

// renew(key, owner, lease): only raises the time to live. `refusal(key, owner)` says why it cannot be moved, if so. By
// comparison: PEXPIRE GT is not known to Redis 6.2. A key that lost its time to live is less. What is longer is
// written, too: WAIT is about what its connection has written.
inline constexpr std::string_view renew = R"lua(
local function renew(key, owner, lease)
  local why = refusal(key, owner)
  if why then return why end
  local left = call('pttl', key)
  if type(left) == 'table' then return left.err end
  local time = call('pexpire', key, math.max(left, tonumber(lease)))
  if type(time) == 'table' then return time.err end
  return -9
end
)lua";

// extend(key, owner, lease): sets it.
inline constexpr std::string_view extend = R"lua(
local function extend(key, owner, lease)
  local why = refusal(key, owner)
  if why then return why end
  local time = call('pexpire', key, lease)
  if type(time) == 'table' then return time.err end
  return -9
end
)lua";

// said_before(mark): what a request with this mark has answered already.
inline constexpr std::string_view said_before = R"lua(
local function said_before(mark)
  local said = call('get', mark)
  if type(said) == 'table' then return said.err end
  if not said then return -11 end
  return {tonumber(said), 1}
end
)lua";

// set_once(key, mark, channel, n, again, keep, said): sets a number that is not there, and publishes `said`. The mark
// keeps the answer.
inline constexpr std::string_view set_once = R"lua(
local function set_once(key, mark, channel, n, again, keep, said)
  if again == '1' then return said_before(mark) end
  local there = call('exists', key)
  if type(there) == 'table' then return there.err end
  local done = call('set', mark, 1 - there, 'px', keep)
  if done.err then return done.err end
  if there == 1 then return {0, 1} end
  done = call('set', key, n)
  if done.err then
    call('del', mark)
    return done.err
  end
  return {1, type(call(publish, channel, said)) == 'table' and 0 or 1}
end
)lua";

}  // namespace latchkey::detail::lua
