#include <wire/lua.hpp>
#include <wire/script.hpp>
#include <wire/scripts.hpp>

namespace latchkey::detail {
namespace {

// `reap` answers the number of free permits, false if none were ever set, or the table of an error. Its first
// ZREMRANGEBYSCORE removes nothing: behind it memory shortage refuses no step any more.
constexpr std::string_view permit_common = R"lua(local never = '922337203685477'
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%.0f', number) end
local function failed(reply) return type(reply) == 'table' and reply.err end
local function told(channel, number) return failed(call(publish, channel, number)) and 0 or 1 end
local function reap(key, timeouts, channel)
  local free = call('get', key)
  if failed(free) then return free end
  if free and not string.find(free, '^-?%d+$') then return {err = 'ERR value is not an integer or out of range'} end
  free = free and tonumber(free)
  local ended = call('zcount', timeouts, 0, text(now))
  if ended == 0 or failed(ended) then return failed(ended) and ended or free end
  local done = call('zremrangebyscore', timeouts, 1, 0)
  if failed(done) then return done end
  free = call('incrby', key, ended)
  if failed(free) then return free end
  done = call('zremrangebyscore', timeouts, 0, text(now))
  if failed(done) then
    call('decrby', key, ended)
    return done
  end
  if free > 0 then told(channel, text(free)) end
  return free
end
)lua";

// Of the commands that change a number, by `act`: looks for the mark of a repeated one.
constexpr std::string_view once = R"lua(
local function once(key, timeouts, mark, channel, argument, amount, lease, again, keep)
  if again == '1' then return said_before(mark) end
  local free = reap(key, timeouts, channel)
  if failed(free) then return free.err end
  local function leave_mark(value)
    return failed(call('set', mark, value, 'px', keep))
  end
  return act(key, timeouts, channel, free, leave_mark, mark, argument, amount)
end
)lua";

constexpr per_item once_per_mark{"once", 3, 5, per_item::channel::given};

}  // namespace

// Its own id there: an earlier copy was granted; the lease counts anew. The hint is the end of the next lease.
constinit lazy_script const permit_acquire{{"acquire", 2, 2, per_item::channel::given}, {permit_common, R"lua(
local function acquire(key, timeouts, channel, id, lease)
  local free = reap(key, timeouts, channel)
  if failed(free) then return free.err end
  local ends = lease == '0' and never or text(now + 1 + lease)
  local own = call('zscore', timeouts, id)
  if failed(own) then return own.err end
  if own then return failed(call('zadd', timeouts, ends, id)) or -3 end
  local granted = free and free >= 1
  if granted then
    local left = call('decrby', key, 1)
    if failed(left) then return left.err end
    local done = call('zadd', timeouts, ends, id)
    if failed(done) then
      call('incrby', key, 1)
      return done.err
    end
    local lives = call('pttl', key)
    if not failed(lives) and lives > 0 then call('pexpire', timeouts, lives) end
    if left > 0 then return -3 end
  end
  local hint, first = 10000, call('zrange', timeouts, 0, 0, 'withscores')
  if not failed(first) and first[2] then hint = math.max(1, math.min(hint, math.ceil(first[2] - now))) end
  return granted and {-3, hint} or hint
end
)lua"}};

constinit lazy_script const permit_release{{"release", 2, 1, per_item::channel::given}, {permit_common, R"lua(
local function release(key, timeouts, channel, id)
  local free = reap(key, timeouts, channel)
  if failed(free) then return free.err end
  local there = call('zscore', timeouts, id)
  if failed(there) then return there.err end
  if not there then return -8 end
  local gone = call('zrem', timeouts, id)
  if failed(gone) then return gone.err end
  free = call('incrby', key, 1)
  if failed(free) then
    call('zadd', timeouts, there, id)
    return free.err
  end
  return told(channel, text(free)) == 1 and -5 or -6
end
)lua"}};

constinit lazy_script const permit_extend{{"extend", 2, 2, per_item::channel::given}, {permit_common, R"lua(
local function extend(key, timeouts, channel, id, lease)
  local free = reap(key, timeouts, channel)
  if failed(free) then return free.err end
  local there = call('zscore', timeouts, id)
  if failed(there) then return there.err end
  if not there then return -8 end
  return failed(call('zadd', timeouts, text(now + 1 + lease), id)) or -9
end
)lua"}};

// The mark says whether it was there.
constinit lazy_script const permit_try_release{once_per_mark,
                                               {permit_common, lua::said_before, R"lua(
local function act(key, timeouts, channel, free, leave_mark, mark, id)
  local there = call('zscore', timeouts, id)
  if failed(there) then return there.err end
  local done = call('del', mark)
  if failed(done) then return done.err end
  local wrong = leave_mark(there and '1' or '0')
  if wrong then return wrong end
  if not there then return {0, 1} end
  free = call('incrby', key, 1)
  if failed(free) then
    call('del', mark)
    return free.err
  end
  done = call('zrem', timeouts, id)
  if failed(done) then
    call('decrby', key, 1)
    call('del', mark)
    return done.err
  end
  return {1, told(channel, text(free))}
end
)lua",
                                                once}};

// Twice in a row changes no more than once: no mark.
constinit lazy_script const permit_update{{"update", 2, 5, per_item::channel::given}, {permit_common, R"lua(
local function update(key, timeouts, channel, id, _, lease)
  local free = reap(key, timeouts, channel)
  if failed(free) then return free.err end
  local there = call('zscore', timeouts, id)
  if failed(there) then return there.err end
  if not there then return {0, 1} end
  return failed(call('zadd', timeouts, text(now + 1 + lease), id)) or {1, 1}
end
)lua"}};

constinit lazy_script const permit_try_set{once_per_mark,
                                           {permit_common, lua::said_before, R"lua(
local function act(key, timeouts, channel, free, leave_mark, mark, unused, n)
  local wrong = leave_mark(free and '0' or '1')
  if wrong then return wrong end
  if free then return {0, 1} end
  local done = call('set', key, n)
  if failed(done) then
    call('del', mark)
    return done.err
  end
  return {1, told(channel, n)}
end
)lua",
                                            once}};

// The number is of all permits, taken ones included; fewer than are taken leaves a negative number of free ones.
constinit lazy_script const permit_set{once_per_mark,
                                       {permit_common, lua::said_before, R"lua(
local function act(key, timeouts, channel, free, leave_mark, mark, unused, n)
  local taken = call('zcount', timeouts, 0, '+inf')
  if failed(taken) then return taken.err end
  local wrong = leave_mark('0')
  if wrong then return wrong end
  local done
  if not free then
    done = call('set', key, n)
  elseif free + taken == tonumber(n) then
    return {0, 1}
  else
    done = call('incrby', key, text(n - free - taken))
  end
  if failed(done) then
    call('del', mark)
    return done.err
  end
  return {0, told(channel, n)}
end
)lua",
                                        once}};

// PERSIST, because Redisson's SET takes a time to live away.
constinit lazy_script const permit_add{once_per_mark,
                                       {permit_common, lua::said_before, R"lua(
local function act(key, timeouts, channel, free, leave_mark, mark, unused, n)
  local wrong = leave_mark('0')
  if wrong then return wrong end
  local done = call('incrby', key, n)
  if failed(done) then
    call('del', mark)
    return done.err
  end
  call('persist', key)
  if tonumber(n) <= 0 then return {0, 1} end
  return {0, told(channel, n)}
end
)lua",
                                        once}};

constinit lazy_script const permit_available{{"available", 2, 5, per_item::channel::given}, {permit_common, R"lua(
local function available(key, timeouts, channel)
  local free = reap(key, timeouts, channel)
  return failed(free) or {free or 0, 1}
end
)lua"}};

constinit lazy_script const permit_acquired{{"acquired", 2, 5, per_item::channel::given}, {permit_common, R"lua(
local function acquired(key, timeouts, channel)
  local free = reap(key, timeouts, channel)
  local taken = failed(free) and free or call('zcount', timeouts, 0, '+inf')
  return failed(taken) or {taken, 1}
end
)lua"}};

}  // namespace latchkey::detail
