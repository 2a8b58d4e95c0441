#include <wire/script.hpp>

#include <boost/uuid/detail/sha1.hpp>

#include <string>
#include <type_traits>

namespace latchkey::detail {

namespace {

// Boost gives the digest as five numbers up to 1.85 and as twenty bytes since.
template <class Element, std::size_t Size>
std::string to_hex(Element const (&digest)[Size]) {
  constexpr char hex_digits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(Size * sizeof(Element) * 2);
  for (auto const element : digest)
    for (int bit = static_cast<int>(sizeof(Element)) * 8 - 4; bit >= 0; bit -= 4)
      hex += hex_digits[(element >> bit) & 0xF];
  return hex;
}

}  // namespace

script::script(std::string_view text, bool publishes) : text_(text), publishes_(publishes) {
  boost::uuids::detail::sha1 hash;
  hash.process_bytes(text.data(), text.size());
  std::remove_reference_t<boost::uuids::detail::sha1::digest_type> digest;
  hash.get_digest(digest);
  sha_ = to_hex(digest);
}

script const& no_keys_script() {
  static script const& the_one = *new script("return 1");
  return the_one;
}

namespace {

// `, KEYS[k - 1], KEYS[k]`
std::string subscripts(char const* list, char const* end, int count) {
  std::string made;
  for (int back = count - 1; back >= 0; --back)
    made += std::string(", ") + list + "[" + end + (back > 0 ? " - " + std::to_string(back) : "") + "]";
  return made;
}

std::string text_of(per_item const& loop) {
  int const words = loop.arguments + (loop.has == per_item::channel::given);
  std::string const keys = std::to_string(loop.keys), arguments = std::to_string(words);
  std::string const all = subscripts("KEYS", "k", loop.keys) + (loop.has == per_item::channel::nil ? ", nil" : "") +
                          subscripts("ARGV", "a", words);
  return "local answer = {}\nfor i = 1, #KEYS / " + keys + " do\n  local k, a = " + keys + " * i, " + arguments +
         " * i\n  answer[i] = " + std::string(loop.function) + "(" + all.substr(2) + ")\nend\nreturn answer";
}

std::string joined(std::initializer_list<std::string_view> fragments, bool publishes) {
  std::string text = "local call = redis.pcall\n";
  if (publishes) text += "local publish = ARGV[#ARGV]\n";
  for (auto const fragment : fragments) text += fragment;
  return text;
}

}  // namespace

namespace lua {

// DEL works when memory is short. A refused PUBLISH comes after the lock is free: it is told apart, not taken for a
// failure.
constinit std::string_view const free = R"lua(local function free(key, channel)
  local gone = call('del', key)
  if type(gone) == 'table' then return gone.err end
  if not channel then return -5 end
  local heard = call(publish, channel, '0')
  if type(heard) == 'table' then return -6 end
  return heard > 0 and -1000 - heard or -5
end
)lua";

// The time first, since PEXPIRE works when memory is short and lets the HINCRBY behind it pass. A count that is no
// number refuses the HINCRBY, which the time to live is not to outlast. Lua counts exactly up to 2^53 only; beyond, the
// empty increment makes the server refuse. A PEXPIRE of few milliseconds may find that they are over, and deletes the
// key: what the HINCRBY then makes anew has no time to live, and is another number.
constinit std::string_view const count_to = R"lua(
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

// By comparison: PEXPIRE GT is not known to Redis 6.2. A key that lost its time to live is less. What is longer is
// written, too: WAIT is about what its connection has written.
constinit std::string_view const renew = R"lua(
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

constinit std::string_view const extend = R"lua(
local function extend(key, owner, lease)
  local why = refusal(key, owner)
  if why then return why end
  local time = call('pexpire', key, lease)
  if type(time) == 'table' then return time.err end
  return -9
end
)lua";

constinit std::string_view const said_before = R"lua(
local function said_before(mark)
  local said = call('get', mark)
  if type(said) == 'table' then return said.err end
  if not said then return -11 end
  return {tonumber(said), 1}
end
)lua";

// The mark keeps the answer.
constinit std::string_view const set_once = R"lua(
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

}  // namespace lua

script const& new_script(per_item const& loop, std::initializer_list<std::string_view> fragments) {
  bool const publishes = loop.has == per_item::channel::given;
  return *new script(joined(fragments, publishes) + text_of(loop), publishes);
}

script const& new_script(std::initializer_list<std::string_view> fragments) {
  return *new script(joined(fragments, false));
}

}  // namespace latchkey::detail
