#include <wire/script.hpp>
#include <wire/scripts.hpp>

namespace latchkey::detail {
namespace {

// What all of them begin with.
//
// The hash `name` has the field `mode`, a count for every owner who reads (`id:owner`), and one for the owner who
// writes (`id:owner:write`). Each read hold has a key of its own, `{name}:id:owner:rwlock_timeout:i`, which lives as
// long as its lease; whoever releases a read hold sets the hash to the longest that is left. They are called stamps
// here. Nobody but their owner writes them.
//
// A stamp with a time to live of zero is still there, until the millisecond is over.
//
// No loop goes further than a client of ours counts: the server stands still meanwhile, and a count may be anything.
constexpr std::string_view read_write_common = R"lua(local not_a_count = 'ERR hash value is not an integer'
local function problem(answer) return type(answer) == 'table' and answer.err or nil end
local function stamps_of(key, field)
  if not string.find(key, '{', 1, true) then key = '{' .. key .. '}' end
  return key .. ':' .. field .. ':rwlock_timeout:'
end
local function last_of(count) return math.min(count, 1048576) end
local function count_of(value)
  local count = tonumber(value)
  return count and math.abs(count) < 1e15 and count or nil
end
local function longest_of(stamps, count, most)
  for i = 1, last_of(count) do
    local left = call('pttl', stamps .. i)
    if problem(left) then return nil, left.err end
    if left == 0 then left = 1 end
    if left > most then most = left end
  end
  return most
end
local function longest_read(key, but)
  local most, why = -3, nil
  local all = call('hgetall', key)
  if problem(all) then return nil, all.err end
  for i = 1, #all, 2 do
    local count = all[i] ~= but and tonumber(all[i + 1])
    if count then
      most, why = longest_of(stamps_of(key, all[i]), count, most)
      if why then return nil, why end
    end
  end
  return most
end
local function stamp(stamps, last, lease)
  for i = 1, last_of(last) do
    local why = problem(call('set', stamps .. i, '1', 'px', lease))
    if why then return why end
  end
end
local function unstamp(stamps, first, last)
  for i = first, last_of(last) do call('del', stamps .. i) end
end
local function recount(key, field, target, count)
  local done = call('hincrby', key, field, target - count)
  if not problem(done) and done ~= tonumber(target) then call('del', key) end  -- see lua::count_to
  return problem(done)
end
local function count_back(key, field, by)
  if call('hexists', key, field) == 1 then call('hincrby', key, field, by) end
end
local function restore(key, left)
  if left < 0 then call('persist', key) else call('pexpire', key, left) end
end
local function release_all(key, channel, message)
  local why = problem(call('del', key))
  if why then return why end
  if problem(call(publish, channel, message)) then return -6 end
  return -5
end
)lua";

}  // namespace

// A fresh key: a refused HSET (memory) wrote nothing; what is refused later takes it away again, since a lock without
// a time to live would never end. A key without `mode` is a lock of another kind: busy.
//
// A hold more of the own field: the time first, since PEXPIRE works when memory is short and lets the rest pass. If
// the server's count was too high, the stamps that go may have been those of holds that stay: the last one gets the
// longest time of them all.
constinit lazy_script const read_write_acquire{{"acquire", 1, 4}, {read_write_common, R"lua(
local function found(key, mode, field, lease)
  local why = problem(call('hset', key, 'mode', mode, field, '1'))
  if why then return why end
  local first = stamps_of(key, field) .. '1'
  if mode == 'read' then why = problem(call('set', first, '1', 'px', lease)) end
  if not why then why = problem(call('pexpire', key, lease)) end
  if not why then return -3 end
  call('del', key)
  if mode == 'read' then call('del', first) end
  return why
end
local function read_more(key, field, own, left, target, lease)
  local stamps, count = stamps_of(key, field), 0
  if own then count = count_of(own) end
  if not count then return not_a_count end
  if target > 1 and count >= target then
    local most, why = longest_of(stamps, count, lease)
    if why then return why end
    lease = most
  end
  local raised, why = left < lease, nil
  if own and raised then why = problem(call('pexpire', key, lease)) end
  if why then return why end
  why = recount(key, field, target, count)
  if not why then
    why = problem(call('set', stamps .. target, '1', 'px', lease))
    if not why and raised and not own then why = problem(call('pexpire', key, lease)) end
    if why and own then count_back(key, field, count - target) end
    if why and not own then call('hdel', key, field) end
  end
  if why then
    if own and raised then restore(key, left) end
    return why
  end
  unstamp(stamps, target + 1, count)
  return -3
end
local function write_more(key, field, own, left, target, lease)
  local count, raised = count_of(own), left < lease
  if not count then return not_a_count end
  local why = raised and problem(call('pexpire', key, lease))
  if why then return why end
  why = recount(key, field, target, count)
  if not why then return -3 end
  if raised then restore(key, left) end
  return why
end
local function acquire(key, side, field, target, lease)
  target, lease = tonumber(target), tonumber(lease)
  local mode = call('hget', key, 'mode')
  if problem(mode) then return mode.err end
  if not mode then
    if target > 1 then return -4 end
    local there = call('exists', key)
    if there == 0 then return found(key, side == '1' and 'write' or 'read', field, lease) end
    if problem(there) then return there.err end
    return problem(call('pttl', key)) or call('pttl', key)
  end
  local open = mode == 'write'
  if side == '0' then
    open = mode == 'read'
    if mode == 'write' then
      local writes = call('hexists', key, field .. ':write')
      if problem(writes) then return writes.err end
      open = writes == 1
    end
  end
  local own = open and call('hget', key, field)
  if problem(own) then return own.err end
  if target > 1 and not own then return -4 end
  local left = call('pttl', key)
  if problem(left) then return left.err end
  if not open or (side == '1' and not own) then return left end
  local more = side == '1' and write_more or read_more
  return more(key, field, own, left, target, lease)
end
)lua"}};

// What is refused is found out by the first write; what comes behind it only tidies up. While somebody writes, the
// time to live is also his: it is not lowered for the sake of a read hold. The last writer leaves his own read holds
// behind, and readers who wait for him are told.
constinit lazy_script const read_write_release{{"release", 1, 4, per_item::channel::given}, {read_write_common, R"lua(
local function read_less(key, field, count, mode, left, target, lease)
  local why = problem(call('pexpire', key, math.max(left, lease)))
  if why then return why end
  local stamps = stamps_of(key, field)
  why = recount(key, field, target, count)
  if not why then
    why = stamp(stamps, target, lease)
    if why then count_back(key, field, count - target) end
  end
  if why then
    restore(key, left)
    return why
  end
  unstamp(stamps, target + 1, count)
  local most = mode ~= 'write' and longest_read(key)
  if most and most > 0 then call('pexpire', key, most) end
  return -7
end
local function read_last(key, channel, field, count, mode)
  local most, why = longest_read(key, field)
  if why then return why end
  local fields = call('hlen', key)
  if problem(fields) then return fields.err end
  local answer = -5
  if mode == 'write' and fields > 2 then
    answer = problem(call('hdel', key, field)) or answer
  elseif most > 0 then
    answer = problem(call('hdel', key, field)) or answer
    if answer == -5 then call('pexpire', key, most) end
  else
    answer = release_all(key, channel, '0')
  end
  if type(answer) == 'number' then unstamp(stamps_of(key, field), 1, count) end
  return answer
end
local function write_less(key, field, count, left, target, lease)
  local most, why = longest_read(key, field)
  if why then return why end
  why = problem(call('pexpire', key, math.max(most, lease)))
  if why then return why end
  why = recount(key, field, target, count)
  if not why then return -7 end
  restore(key, left)
  return why
end
local function write_last(key, channel, field, own)
  local fields = call('hlen', key)
  if problem(fields) then return fields.err end
  if fields <= 2 then return release_all(key, channel, '1') end
  local most, why = longest_read(key, field)
  if why then return why end
  why = problem(call('hdel', key, field))
  if why then return why end
  why = problem(call('hset', key, 'mode', 'read'))
  if why then
    call('hset', key, field, own)
    return why
  end
  if most > 0 then call('pexpire', key, most) end
  if problem(call(publish, channel, '1')) then return -6 end
  return -5
end
local function release(key, channel, side, field, target, lease)
  target, lease = tonumber(target), tonumber(lease)
  local own = call('hget', key, field)
  if problem(own) then return own.err end
  if not own then
    if target == 0 and call('exists', key) == 0 then call(publish, channel, side) end
    return -8
  end
  if side == '1' and target == 0 then return write_last(key, channel, field, own) end
  local mode = call('hget', key, 'mode')
  local left = call('pttl', key)
  if problem(mode) or problem(left) then return problem(mode) or problem(left) end
  local count = count_of(own)
  if target == 0 then return read_last(key, channel, field, count or 0, mode) end
  if not count then return not_a_count end
  if side == '1' then return write_less(key, field, count, left, target, lease) end
  return read_less(key, field, count, mode, left, target, lease)
end
)lua"}};

// Only raises. A stamp that went missing while its hold is there would let the next reader who leaves forget it.
constinit lazy_script const read_write_renew{{"renew", 1, 3}, {read_write_common, R"lua(
local function raise(key, lease)
  local left = call('pttl', key)
  if problem(left) then return left.err end
  if left == -2 then return problem(call('set', key, '1', 'px', lease)) end
  return problem(call('pexpire', key, math.max(left, lease)))
end
local function renew(key, side, field, lease)
  lease = tonumber(lease)
  local own = call('hget', key, field)
  if problem(own) then return own.err end
  if not own then return -8 end
  local why = raise(key, lease)
  if why then return why end
  local count = side == '0' and tonumber(own) or 0
  for i = 1, last_of(count) do
    why = raise(stamps_of(key, field) .. i, lease)
    if why then return why end
  end
  return -9
end
)lua"}};

constinit lazy_script const read_write_extend{{"extend", 1, 3}, {read_write_common, R"lua(
local function extend_read(key, field, own, lease)
  local count, left, mode = count_of(own), call('pttl', key), call('hget', key, 'mode')
  if not count then return not_a_count end
  local why = problem(left) or problem(mode) or problem(call('pexpire', key, math.max(left, lease)))
  why = why or stamp(stamps_of(key, field), count, lease)
  if why then return why end
  local most = mode ~= 'write' and longest_read(key)
  if most and most > 0 then call('pexpire', key, most) end
  return -9
end
local function extend(key, side, field, lease)
  lease = tonumber(lease)
  local own = call('hget', key, field)
  if problem(own) then return own.err end
  if not own then return -8 end
  if side == '0' then return extend_read(key, field, own, lease) end
  local most, why = longest_read(key, field)
  why = why or problem(call('pexpire', key, math.max(most, lease)))
  return why or -9
end
)lua"}};

// Removes what is held in this mode; the writer's read holds go with him. The stamps end by themselves.
constinit lazy_script const read_write_force_unlock{{"force", 1, 1, per_item::channel::given},
                                                    {read_write_common, R"lua(
local function force(key, channel, side)
  local mode = call('hget', key, 'mode')
  if problem(mode) then return mode.err end
  if mode ~= (side == '1' and 'write' or 'read') then return -8 end
  return release_all(key, channel, side)
end
)lua"}};

}  // namespace latchkey::detail
