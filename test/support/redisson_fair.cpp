#include <support/redisson_fair.hpp>

#include <stdexcept>

namespace latchkey::test {

namespace {

// Written from the steps in the notes on Redisson's protocol. `now` is the caller's clock.
std::string const evict = R"(
local function evict(now)
  while true do
    local head = redis.call('lindex', KEYS[2], 0)
    if not head then return end
    local score = redis.call('zscore', KEYS[3], head)
    if not score or tonumber(score) > now then return end
    redis.call('zrem', KEYS[3], head)
    redis.call('lpop', KEYS[2])
  end
end
local function take(lease, field, wait)
  if redis.call('exists', KEYS[1]) == 0 and
     (redis.call('exists', KEYS[2]) == 0 or redis.call('lindex', KEYS[2], 0) == field) then
    redis.call('lpop', KEYS[2])
    redis.call('zrem', KEYS[3], field)
    for _, other in ipairs(redis.call('zrange', KEYS[3], 0, -1)) do
      redis.call('zincrby', KEYS[3], -wait, other)
    end
    redis.call('hset', KEYS[1], field, 1)
    redis.call('pexpire', KEYS[1], lease)
    return true
  end
  if redis.call('hexists', KEYS[1], field) == 1 then
    redis.call('hincrby', KEYS[1], field, 1)
    redis.call('pexpire', KEYS[1], lease)
    return true
  end
end
)";

std::string derived(std::string const& prefix, std::string const& lock) {
  return prefix + ":" + (lock.find('{') == std::string::npos ? "{" + lock + "}" : lock);
}

std::string const wait_for_it = evict + R"(
local field, wait, now = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
evict(now)
if take(ARGV[1], field, wait) then return false end
if redis.call('zscore', KEYS[3], field) then return math.max(0, redis.call('pttl', KEYS[1])) end
local last = redis.call('lindex', KEYS[2], -1)
local score = last and last ~= field and redis.call('zscore', KEYS[3], last)
local time = score and tonumber(score) - now or redis.call('pttl', KEYS[1])
if redis.call('zadd', KEYS[3], time + wait + now, field) == 1 then redis.call('rpush', KEYS[2], field) end
return time
)";

std::string const try_it = evict + R"(
evict(tonumber(ARGV[3]))
if take(ARGV[1], ARGV[2], tonumber(ARGV[4])) then return false end
return 1
)";

std::string const release_it = evict + R"(
evict(tonumber(ARGV[4]))
local function tell()
  local head = redis.call('lindex', KEYS[2], 0)
  if head then redis.call('publish', KEYS[4] .. ':' .. head, ARGV[1]) end
end
if redis.call('exists', KEYS[1]) == 0 then
  tell()
  return 1
end
if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return -1 end
if redis.call('hincrby', KEYS[1], ARGV[3], -1) > 0 then
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 0
end
redis.call('del', KEYS[1])
tell()
return 1
)";

std::string const clean_up = R"(
local found = false
for _, other in ipairs(redis.call('lrange', KEYS[1], 0, -1)) do
  if found then redis.call('zincrby', KEYS[2], -tonumber(ARGV[2]), other) end
  found = found or other == ARGV[1]
end
redis.call('zrem', KEYS[2], ARGV[1])
redis.call('lrem', KEYS[1], 0, ARGV[1])
)";

}  // namespace

redisson_fair::redisson_fair(redis_server const& server, std::string lock, std::string field,
                             std::chrono::milliseconds clock_off, std::chrono::milliseconds wait)
    : calls_(server.admin()),
      messages_(server.admin()),
      lock_(std::move(lock)),
      field_(std::move(field)),
      queue_(derived("redisson_lock_queue", lock_)),
      scores_(derived("redisson_lock_timeout", lock_)),
      channel_(derived("redisson_lock__channel", lock_)),
      clock_off_(clock_off),
      wait_(wait) {}

std::int64_t redisson_fair::now() const {
  auto const since = std::chrono::system_clock::now().time_since_epoch() + clock_off_;
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

bool redisson_fair::answered(raw_redis::reply const& said) {
  if (said.kind == raw_redis::reply::type::nil) return true;
  hint_ = said.integer;
  return false;
}

bool redisson_fair::acquire(std::chrono::milliseconds lease) {
  return answered(
      calls_.ok("EVAL", wait_for_it, 3, lock_, queue_, scores_, lease.count(), field_, wait_.count(), now()));
}

bool redisson_fair::try_once(std::chrono::milliseconds lease) {
  return answered(calls_.ok("EVAL", try_it, 3, lock_, queue_, scores_, lease.count(), field_, now(), wait_.count()));
}

std::int64_t redisson_fair::unlock() {
  return calls_.integer("EVAL", release_it, 4, lock_, queue_, scores_, channel_, 0, 30'000, field_, now());
}

void redisson_fair::give_up() { calls_.ok("EVAL", clean_up, 2, queue_, scores_, field_, wait_.count()); }

void redisson_fair::subscribe() { messages_.ok("SUBSCRIBE", channel_ + ":" + field_); }

bool redisson_fair::hear(std::chrono::milliseconds limit) {
  try {
    return messages_.receive(limit).elements.size() == 3;
  } catch (std::runtime_error const&) {
    return false;
  }
}

namespace {

using answer = detail::reply;

std::optional<std::int64_t> number(answer const& said) {
  if (said.kind == answer::type::nil) return {};
  return said.integer;
}

}  // namespace

std::optional<std::int64_t> redisson_read_write::read(std::int64_t lease) {
  return number(admin_.ok("EVAL",
                          R"lua(local m = redis.call('hget', KEYS[1], 'mode')
if not m then
  redis.call('hset', KEYS[1], 'mode', 'read')
  redis.call('hset', KEYS[1], ARGV[2], 1)
  redis.call('set', KEYS[2] .. ':1', 1)
  redis.call('pexpire', KEYS[2] .. ':1', ARGV[1])
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
if m == 'read' or (m == 'write' and redis.call('hexists', KEYS[1], ARGV[3]) == 1) then
  local i = redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('set', KEYS[2] .. ':' .. i, 1)
  redis.call('pexpire', KEYS[2] .. ':' .. i, ARGV[1])
  local r = redis.call('pttl', KEYS[1])
  redis.call('pexpire', KEYS[1], math.max(r, ARGV[1]))
  return nil
end
return redis.call('pttl', KEYS[1]))lua",
                          2, name_, stamps(), lease, owner_, owner_ + ":write"));
}

std::optional<std::int64_t> redisson_read_write::write(std::int64_t lease) {
  return number(admin_.ok("EVAL",
                          R"lua(local m = redis.call('hget', KEYS[1], 'mode')
if not m then
  redis.call('hset', KEYS[1], 'mode', 'write')
  redis.call('hset', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
if m == 'write' and redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], redis.call('pttl', KEYS[1]) + ARGV[1])
  return nil
end
return redis.call('pttl', KEYS[1]))lua",
                          1, name_, lease, owner_ + ":write"));
}

std::optional<std::int64_t> redisson_read_write::unlock_read() {
  return number(admin_.ok("EVAL",
                          R"lua(local m = redis.call('hget', KEYS[1], 'mode')
if not m then
  redis.call('publish', KEYS[2], ARGV[1])
  return nil
end
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return nil end
local c = redis.call('hincrby', KEYS[1], ARGV[2], -1)
if c == 0 then redis.call('hdel', KEYS[1], ARGV[2]) end
redis.call('del', KEYS[3] .. ':' .. (c + 1))
if redis.call('hlen', KEYS[1]) > 1 then
  local most = -3
  for _, f in ipairs(redis.call('hkeys', KEYS[1])) do
    local n = tonumber(redis.call('hget', KEYS[1], f))
    if type(n) == 'number' then
      for i = n, 1, -1 do
        most = math.max(redis.call('pttl', KEYS[4] .. ':' .. f .. ':rwlock_timeout:' .. i), most)
      end
    end
  end
  if most > 0 then
    redis.call('pexpire', KEYS[1], most)
    return 0
  end
  if m == 'write' then return 0 end
end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], ARGV[1])
return 1)lua",
                          4, name_, channel(), stamps(), prefix(), 0, owner_));
}

std::optional<std::int64_t> redisson_read_write::unlock_write(std::int64_t lease) {
  return number(admin_.ok("EVAL",
                          R"lua(local m = redis.call('hget', KEYS[1], 'mode')
if not m then
  redis.call('publish', KEYS[2], ARGV[1])
  return nil
end
if m ~= 'write' or redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end
if redis.call('hincrby', KEYS[1], ARGV[3], -1) > 0 then
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 0
end
redis.call('hdel', KEYS[1], ARGV[3])
if redis.call('hlen', KEYS[1]) == 1 then
  redis.call('del', KEYS[1])
  redis.call('publish', KEYS[2], ARGV[1])
else
  redis.call('hset', KEYS[1], 'mode', 'read')
end
return 1)lua",
                          2, name_, channel(), 1, lease, owner_ + ":write"));
}

bool redisson_read_write::renew_read(std::int64_t lease) {
  return admin_
             .ok("EVAL",
                 R"lua(local c = redis.call('hget', KEYS[1], ARGV[2])
if not c then return 0 end
for i = c, 1, -1 do redis.call('pexpire', KEYS[2] .. ':' .. ARGV[2] .. ':rwlock_timeout:' .. i, ARGV[1]) end
redis.call('pexpire', KEYS[1], ARGV[1])
return 1)lua",
                 2, name_, prefix(), lease, owner_)
             .integer == 1;
}

}  // namespace latchkey::test
