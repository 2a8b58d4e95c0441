#include <wire/item.hpp>
#include <wire/kinds.hpp>
#include <wire/lua.hpp>
#include <wire/number.hpp>
#include <wire/reentrant_family.hpp>
#include <wire/script.hpp>
#include <wire/scripts.hpp>

namespace latchkey::detail {

namespace {

// Before anything else is written the counter goes up, whoever asks and why: where that is refused (it is no number,
// or the largest, or memory is short) nobody gets the lock. An owner who takes it again, or whose request is repeated,
// has a new token, too: it is above those of all earlier holders and below those of all later ones, since nobody else
// moves the counter while he holds the lock.
//
// Where a repeated request finds the grant of its earlier copy and no token, that grant goes: nobody knows of it.
//
// A missing counter begins at 1 or, `seeded`, at the server's time in microseconds.
constexpr std::string_view next_token = R"lua(local function next_token(counter, seeded)
  local step = '1'
  if seeded == '1' and call('exists', counter) == 0 then
    local now = call('time')
    if now.err then return nil, now.err end
    step = string.format('%d%06d', now[1], now[2])
  end
  local done = call('incrby', counter, step)
  if type(done) == 'table' then return nil, done.err end
  if done < 1 then return nil, 'ERR the counter of fencing tokens is below zero' end
  local token = call('get', counter)
  if type(token) ~= 'string' then return nil, token and token.err or 'ERR the counter of fencing tokens is gone' end
  return token
end
)lua";

}  // namespace

constinit lazy_script const fenced_acquire{{"acquire", 2, 4}, {lua::count_to, next_token, R"lua(
local function acquire(key, counter, field, target, lease, seeded)
  if target == '1' then
    local there = call('exists', key)
    if there == 0 then
      local token, refused = next_token(counter, seeded)
      if not token then return refused end
      local count = call('hincrby', key, field, '1')
      if type(count) == 'table' then return count.err end
      local time = call('pexpire', key, lease)
      if type(time) ~= 'table' then return {-3, token} end
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
  local token, refused = next_token(counter, seeded)
  if not token then
    if target == '1' then call('del', key) end
    return refused
  end
  local timed = target == '1' or left < tonumber(lease)
  return count_to(key, field, own, target, lease, left, timed) or {-3, token}
end
)lua"}};

// Without a token the new owner gets nothing, and the old one's release goes on: the lock goes free.
constinit lazy_script const fenced_hand_off{{"hand_off", 2, 4, per_item::channel::given}, {lua::free, next_token, R"lua(
local function hand_off(key, counter, channel, from, to, lease, seeded)
  local own = call('hexists', key, from)
  if type(own) == 'table' then return {own.err, own.err} end
  if own == 1 then
    local token, refused = next_token(counter, seeded)
    if not token then return {free(key, channel), refused} end
    local done = call('pexpire', key, lease)
    if type(done) ~= 'table' then done = call('hset', key, to, '1') end
    if type(done) ~= 'table' then done = call('hdel', key, from) end
    if type(done) == 'table' then return {free(key, channel), done.err} end
    if done == 0 then call('del', key) end
    return {-5, {-3, token}}
  end
  local granted = call('hexists', key, to) == 1
  if granted or call('exists', key) == 0 then
    local token, refused = next_token(counter, seeded)
    if not token then
      if granted then free(key, channel) end
      return {-8, refused}
    end
    local done = call('hset', key, to, '1')
    if type(done) == 'table' then return {-8, done.err} end
    done = call('pexpire', key, lease)
    if type(done) ~= 'table' then return {-8, {-3, token}} end
    if not granted then call('del', key) end
    return {-8, done.err}
  end
  local left = call('pttl', key)
  if type(left) == 'table' then left = left.err end
  return {-8, left}
end
)lua"}};

namespace {

// Digits and nothing else, as the server writes numbers, and no more than its counters hold.
bool read_token(reply const& element, std::int64_t& token) {
  return element.kind == reply::type::string && read_number(element.text, token) && token >= 0;
}

class fenced final : public reentrant_family {
 public:
  explicit fenced(bool seeded)
      : reentrant_family({.name = "fenced_lock",
                          .parameters = seeded ? "seeded" : "",
                          .tokens = true,
                          .scripts = {&fenced_acquire, nullptr, &fenced_hand_off}}),
        seeded_(seeded) {}

  void add_keys(item const& item, words& command) const override {
    reentrant_family::add_keys(item, command);
    if (grants(item.what)) command.add(counter(item.name));
  }

  void add_arguments(item const& item, words& command) const override {
    reentrant_family::add_arguments(item, command);
    if (grants(item.what)) command.add(std::int64_t{seeded_});
  }

  void add_query(query what, item const& item, words& command) const override {
    if (what != query::token) return reentrant_family::add_query(what, item, command);
    command.add_all("GET", counter(item.name));
  }

  bool read_query(query what, reply const& answer, std::int64_t& value) const override {
    if (what != query::token) return reentrant_family::read_query(what, answer, value);
    value = 0;
    return answer.kind == reply::type::nil || read_token(answer, value);
  }

 private:
  static bool grants(ask what) { return what == ask::acquire || what == ask::hand_off; }
  static std::string counter(std::string_view name) { return prefixed("redisson_lock_token", name); }

  // A grant without a token is none.
  outcome read_grant(reply const& element) const override {
    if (says(element, verdict::granted)) return {};
    if (!element.is_array()) return reentrant_family::read_grant(element);
    std::int64_t token = 0;
    if (element.elements.size() != 2 || !says(element.elements[0], verdict::granted) ||
        !read_token(element.elements[1], token) || token == 0)
      return {};
    return {.what = outcome::type::granted, .token = static_cast<std::uint64_t>(token)};
  }

  bool const seeded_;
};

}  // namespace

kind const& fenced_kind(bool seeded) { return seeded ? lasting<fenced, true>() : lasting<fenced, false>(); }

}  // namespace latchkey::detail
