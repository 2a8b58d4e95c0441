#include <support/redisson_read_write.hpp>

namespace latchkey::test {

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
