#include <wire/scripts.hpp>

namespace latchkey::detail {

namespace {

// What the scripts share. An item that meets an error raises it, and `each` puts its text into that item's answer:
// everything that may be refused for its type is read before the first write.
//
// The queue is Redisson's: a list of fields in the order of their arrival, and a zset with the time, in milliseconds
// of the server's clock, at which a silent waiter counts as dead. `line` is how long a waiter stays in line as the
// first one without being heard of. Each grant and each leave takes that off the scores of those behind, but never so
// much that a live one has not the time to look again.
// `tell` wakes who is first. PUBLISH says whether anybody heard it: whom nobody hears may be dead, has `grace`
// milliseconds to show up, and the next one is told, too. Who cannot listen polls more often than that. An entry
// without a score, which Redisson would never put out, gets as long.
constexpr std::string_view fair_common = R"lua(local publish = ARGV[#ARGV]
local grace, clock = 700, nil
local function call(...)
  local made = redis.pcall(...)
  if type(made) == 'table' and made.err then error(made, 0) end
  return made
end
local function fails(made) return type(made) == 'table' and made.err end
local function now()
  if not clock then
    local time = call('time')
    clock = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return clock
end
local function score_of(scores, field)
  local score = field and call('zscore', scores, field)
  return score and tonumber(score)
end
local function score_to(scores, field, score)
  return redis.pcall('zadd', scores, string.format('%.0f', score), field)
end
local function take_off(scores, field, line)
  local score = score_of(scores, field)
  if score then score_to(scores, field, math.max(score - line, math.min(score, now() + grace))) end
end
local function first(queue, scores)
  local evicted = false
  while true do
    local head = call('lindex', queue, 0)
    if not head then return false, evicted end
    local score = score_of(scores, head)
    if score and score > now() then return head, evicted end
    if not score and not fails(score_to(scores, head, now() + grace)) then return head, evicted end
    call('zrem', scores, head)
    call('lpop', queue)
    evicted = true
  end
end
local function tell(queue, scores, channel, teller)
  local unheard = false
  for _, field in ipairs(call('lrange', queue, 0, 7)) do
    if field == teller then return false end
    if call(publish, channel .. ':' .. field, '0') > 0 then return false end
    local score = score_of(scores, field)
    if not score or score > now() + grace then unheard = not fails(score_to(scores, field, now() + grace)) end
  end
  return unheard
end
local function wake(queue, scores, channel)
  if first(queue, scores) then tell(queue, scores, channel) end
end
local function count_to(key, field, own, target)
  local count, step = tonumber(own), 0
  if count then step = math.abs(count) < 1e15 and target - count or '' end
  local done = redis.pcall('hincrby', key, field, step)
  local refused = fails(done)
  if not refused and done ~= tonumber(target) then call('del', key) end
  return refused
end
local function each(of, keys, arguments)
  local answer = {}
  for i = 1, #KEYS / keys do
    local words = {}
    for k = 1, keys do words[k] = KEYS[(i - 1) * keys + k] end
    for a = 1, arguments do words[keys + a] = ARGV[(i - 1) * arguments + a] end
    local done, made = pcall(of, unpack(words))
    if not done then made = type(made) == 'table' and made.err or tostring(made) end
    answer[i] = made
  end
  return answer
end
)lua";

// Of the scripts that grant: `take` a free lock, `stand` in the queue if that cannot be.
//
// A waiter that tries again keeps its place: its score rises to what it would be written with now, which is relative
// to the one before it, since each grant takes its own time off all scores. The first two look again often, for the
// lock may come free without a message; those whom nobody tells before they have come nearer the less often the farther
// they stand; but whoever finds the lock free, and is the first to tell some whom nobody hears, comes again when their
// grace is over: else a process that died with hundreds of waiters would cost minutes. A place is a rank by score: LPOS
// would walk the whole line. It is asked only where the line and the scores may differ, and of those near the head,
// where it is cheap.
constexpr std::string_view placing = R"lua(local function take_out(queue, scores, field, line, queued)
  if not queued then return redis.pcall('zremrangebyrank', scores, 0, -1) end
  redis.pcall('lrem', queue, 0, field)
  redis.pcall('zrem', scores, field)
  local others = redis.pcall('zrange', scores, 0, -1)
  if fails(others) then return end
  for _, other in ipairs(others) do take_off(scores, other, line) end
end
local function take(key, queue, scores, field, lease, line, queued)
  call('hincrby', key, field, '1')
  local failed = fails(redis.pcall('pexpire', key, lease))
  if failed then
    call('del', key)
    return failed
  end
  take_out(queue, scores, field, line, queued)
  return -3
end
local function stand(queue, scores, field, line, left)
  local score = score_of(scores, field)
  local whole = redis.pcall('llen', queue) == redis.pcall('zcard', scores)
  local place, before = whole and score and redis.pcall('zrank', scores, field), nil
  if type(place) ~= 'number' or place < 16 or call('lindex', queue, place) ~= field then
    place = (score or not whole) and call('lpos', queue, field)
  end
  if not place then
    before = call('lindex', queue, -1)
  elseif place > 0 then
    before = call('lindex', queue, place - 1)
  end
  local start = math.max(score_of(scores, before) or now() + left, now())
  if not score or score < start + line then
    local failed = fails(score_to(scores, field, start + line))
    if failed and not place then error({err = failed}, 0) end
  end
  if place then return place end
  local length = redis.pcall('rpush', queue, field)
  if fails(length) then
    redis.pcall('zrem', scores, field)
    error(length, 0)
  end
  return length - 1
end
local function sleep(queue, scores, channel, field, line, enters, head, left, told)
  local place, free = enters == '1' and stand(queue, scores, field, tonumber(line), left), left == -2
  local done, unheard
  if free then
    if not told then done, unheard = pcall(tell, queue, scores, channel, field) end
    left = math.min((score_of(scores, head) or now()) - now(), place == 1 and 20 or 1000)
  elseif place then
    left = math.min(left, place < 2 and 500 or 1000)
  end
  if place and place >= 8 then
    left = done and unheard and grace or math.min(free and 1000 + 25 * place or 125 * place, 10000)
  end
  if left < 0 then return left end
  return math.floor(math.min(left, line / 3))
end
)lua";

constexpr per_item own_loop{.has = per_item::channel::given};

}  // namespace

// `again` and the grant keep the order of steps of the reentrant lock. Who finds the lock free but stands behind
// somebody tells the first one: its message may have been lost, or never sent by another library that evicted.
constinit lazy_script const fair_acquire{own_loop, {fair_common, placing, R"lua(
local function again(key, queue, scores, field, own, target, lease)
  local left = call('pttl', key)
  local timed = target == '1' or left < tonumber(lease)
  if timed then call('pexpire', key, lease) end
  local failed = count_to(key, field, own, target)
  if failed then
    if timed then
      if left < 0 then redis.pcall('persist', key) else redis.pcall('pexpire', key, left) end
    end
    return failed
  end
  if target == '1' and redis.pcall('zrem', scores, field) == 1 then redis.pcall('lrem', queue, 0, field) end
  return -3
end
local function acquire(key, queue, scores, channel, field, target, lease, line, enters)
  local own = call('hget', key, field)
  if own then return again(key, queue, scores, field, own, target, lease) end
  if target ~= '1' then return -4 end
  local head = first(queue, scores)
  local left = call('pttl', key)
  if left == -2 and (not head or head == field) then
    return take(key, queue, scores, field, lease, line, head)
  end
  return sleep(queue, scores, channel, field, line, enters, head, left)
end
return each(acquire, 3, 6))lua"}};

// DEL and PEXPIRE work when memory is short. What fails behind the DEL only means that nobody was told.
constinit lazy_script const fair_release{own_loop, {fair_common, R"lua(
local function release(key, queue, scores, channel, field, target, lease)
  local own = call('hget', key, field)
  if not own then
    if target == '0' and call('exists', key) == 0 then pcall(wake, queue, scores, channel) end
    return -8
  end
  if target == '0' then
    call('del', key)
    if pcall(wake, queue, scores, channel) then return -5 end
    return -6
  end
  local left = call('pttl', key)
  call('pexpire', key, lease)
  local failed = count_to(key, field, own, target)
  if not failed then return -7 end
  if left < 0 then redis.pcall('persist', key) else redis.pcall('pexpire', key, left) end
  return failed
end
return each(release, 3, 4))lua"}};

// The release never fails for the sake of the new owner, who gets it only if it is his turn over all processes. If it
// is not, he stands in the queue, and whoever is first is told.
constinit lazy_script const fair_hand_off{own_loop, {fair_common, placing, R"lua(
local function free(key, queue, scores, channel)
  call('del', key)
  if pcall(wake, queue, scores, channel) then return -5 end
  return -6
end
local function grant(key, queue, scores, channel, to, lease, line, enters)
  if call('hexists', key, to) == 1 then
    call('pexpire', key, lease)
    if call('hset', key, to, '1') == 1 then call('del', key) end
    return -3
  end
  local head = first(queue, scores)
  local left = call('pttl', key)
  if left == -2 and (not head or head == to) then return take(key, queue, scores, to, lease, line, head) end
  return sleep(queue, scores, channel, to, line, enters, head, left)
end
local function guarded(...)
  local done, made = pcall(...)
  if done then return made end
  return type(made) == 'table' and made.err or tostring(made)
end
local function hand_off(key, queue, scores, channel, from, to, lease, line, enters)
  if call('hexists', key, from) == 0 then
    return {-8, guarded(grant, key, queue, scores, channel, to, lease, line, enters)}
  end
  local known, head = pcall(first, queue, scores)
  if not known or (head and head ~= to) then
    local released = free(key, queue, scores, channel)
    return {released, guarded(sleep, queue, scores, channel, to, line, enters, head, -2, true)}
  end
  local done = redis.pcall('pexpire', key, lease)
  if not fails(done) then done = redis.pcall('hset', key, to, '1') end
  if not fails(done) then done = redis.pcall('hdel', key, from) end
  if fails(done) then return {free(key, queue, scores, channel), done.err} end
  if done == 0 then call('del', key) end
  take_out(queue, scores, to, line, head)
  return {-5, -3}
end
return each(hand_off, 3, 6))lua"}};

// Asks for the length first: a key that holds something else is not ours to delete.
constinit lazy_script const fair_force_unlock{own_loop, {fair_common, R"lua(
local function force(key, queue, scores, channel)
  local there = call('hlen', key)
  if there == 0 then
    pcall(wake, queue, scores, channel)
    return -8
  end
  call('del', key)
  if pcall(wake, queue, scores, channel) then return -5 end
  return -6
end
return each(force, 3, 1))lua"}};

// Whoever stood behind gets the time back that those were given who leave. If the lock is free and somebody else is
// first now, nobody but this script would tell him. All who leave one line in one call do so in one walk along it.
constinit lazy_script const fair_leave{own_loop, {fair_common, R"lua(
local function leave(key, queue, scores, channel, from, to, answer)
  local there, leaving, off = call('lrange', queue, 0, -1), {}, 0
  for i = from, to do
    leaving[ARGV[3 * i - 1]] = tonumber(ARGV[3 * i])
    answer[i] = -8
  end
  local gone = {}
  for _, other in ipairs(there) do
    if not leaving[other] then
      if off > 0 then take_off(scores, other, off) end
    elseif not gone[other] then
      gone[other] = true
      off = off + leaving[other]
    end
  end
  for i = from, to do
    local field = ARGV[3 * i - 1]
    call('zrem', scores, field)
    if gone[field] then
      call('lrem', queue, 0, field)
      answer[i] = -5
    end
  end
  local head, evicted = first(queue, scores)
  if head and (gone[there[1]] or evicted) and call('exists', key) == 0 then tell(queue, scores, channel) end
end
local answer, from = {}, 1
while from <= #KEYS / 3 do
  local to, k = from, 3 * from
  while KEYS[3 * to + 2] and KEYS[3 * to + 2] == KEYS[k - 1] do to = to + 1 end
  local done, made = pcall(leave, KEYS[k - 2], KEYS[k - 1], KEYS[k], ARGV[k - 2], from, to, answer)
  if not done then
    made = type(made) == 'table' and made.err or tostring(made)
    for i = from, to do answer[i] = made end
  end
  from = to + 1
end
return answer)lua"}};

}  // namespace latchkey::detail
