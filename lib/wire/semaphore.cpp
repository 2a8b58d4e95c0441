#include <wire/commands.hpp>
#include <wire/kinds.hpp>
#include <wire/lua.hpp>
#include <wire/script.hpp>
#include <wire/scripts.hpp>

#include <string>

namespace latchkey::detail {

// What a command is refused for must leave nothing: the step that memory shortage refuses comes first, and where
// permits come back (which must work then, too) a DEL of the mark does, behind which the others pass.

// A big request that waits leaves a claim for its client. What it claims is left alone by others, so that they cannot
// pass it for ever. The claim's end is told to those whom it kept out. `n` is how many, or "how many/how many there are
// to be if nobody has said so yet": most have no use for an argument more.
constinit lazy_script const semaphore_acquire{
    {"acquire", 3, 5, per_item::channel::given},
    {R"lua(local function acquire(key, claim, mark, channel, client, n, waits, again, keep)
  if again == '1' then
    local ran = call('exists', mark)
    if type(ran) == 'table' then return ran.err end
    return ran == 1 and -3 or -11
  end
  local value = call('get', key)
  if type(value) == 'table' then return value.err end
  local first
  n, first = string.match(n, '^(%d+)/?(.*)$')
  if not value and first ~= '' then
    local done = call('set', key, first)
    if done.err then return done.err end
    value = first
    call(publish, channel, first)
  end
  local free, wanted = tonumber(value or 0), tonumber(n)
  if not free then return 'ERR value is not an integer or out of range' end
  local claims = waits == '1' and wanted > 1
  if free < wanted and not claims then return 10000 end
  local there = call('get', claim)
  if type(there) == 'table' then return there.err end
  local claimed, who = string.match(there or '', '^(%d+) (.*)$')
  local others = claimed and who ~= client and tonumber(claimed) or 0
  if free - others < wanted then
    if claims and others == 0 then call('set', claim, n .. ' ' .. client, 'px', 2000) end
    return 1000
  end
  local left = call('decrby', key, n)
  if type(left) == 'table' then return left.err end
  local done = call('set', mark, n, 'px', keep)
  if done.err then
    call('incrby', key, n)
    return done.err
  end
  if claimed and others == 0 then
    call('del', claim)
    if left > 0 then call(publish, channel, left) end
  end
  if left > others then return -3 end
  return {-3, 1000}
end
)lua"}};

// Nobody of this client waits any more: those whom its claim kept out may have what there is.
constinit lazy_script const semaphore_leave{{"leave", 2, 1, per_item::channel::given},
                                            {R"lua(local function leave(key, claim, channel, client)
  local there = call('get', claim)
  if type(there) == 'table' then return there.err end
  if string.match(there or '', '^%d+ (.*)$') ~= client then return -8 end
  local done = call('del', claim)
  if type(done) == 'table' then return done.err end
  local free = tonumber(call('get', key))
  if free and free > 0 then call(publish, channel, free) end
  return -5
end
)lua"}};

// The mark says how many were taken, and goes with them: it gives back once.
constinit lazy_script const semaphore_give_back{{"give_back", 2, 1, per_item::channel::given},
                                                {R"lua(local function give_back(key, mark, channel, keep)
  local taken = call('get', mark)
  if type(taken) == 'table' then return taken.err end
  if not taken then return -8 end
  local done = call('del', mark)
  if type(done) == 'table' then return done.err end
  local value = call('incrby', key, taken)
  if type(value) == 'table' then
    call('set', mark, taken, 'px', keep)
    return value.err
  end
  if type(call(publish, channel, value)) == 'table' then return -6 end
  return -5
end
)lua"}};

constinit lazy_script const semaphore_release{{"release", 2, 3, per_item::channel::given}, {lua::said_before, R"lua(
local function release(key, mark, channel, n, again, keep)
  if again == '1' then return said_before(mark) end
  local done = call('del', mark)
  if type(done) ~= 'table' then done = call('set', mark, '0', 'px', keep) end
  if type(done) == 'table' and done.err then return done.err end
  local value = call('incrby', key, n)
  if type(value) == 'table' then
    call('del', mark)
    return value.err
  end
  return {0, type(call(publish, channel, value)) == 'table' and 0 or 1}
end
)lua"}};

// PERSIST, because Redisson's SET takes a time to live away.
constinit lazy_script const semaphore_add{{"add", 2, 3, per_item::channel::given}, {lua::said_before, R"lua(
local function add(key, mark, channel, n, again, keep)
  if again == '1' then return said_before(mark) end
  local done = call('set', mark, '0', 'px', keep)
  if done.err then return done.err end
  local value = call('incrby', key, n)
  if type(value) == 'table' then
    call('del', mark)
    return value.err
  end
  call('persist', key)
  return {0, type(call(publish, channel, value)) == 'table' and 0 or 1}
end
)lua"}};

// The mark keeps how many there were. A double of 2^63 is no integer of Redis any more: more than an int has is cut
// off.
constinit lazy_script const semaphore_drain{{"drain", 2, 3}, {lua::said_before, R"lua(
local function drain(key, mark, _, again, keep)
  if again == '1' then return said_before(mark) end
  local value = call('get', key)
  if type(value) == 'table' then return value.err end
  if not value then value = '0' end
  if not string.find(value, '^-?%d+$') then return 'ERR value is not an integer or out of range' end
  local drained = math.min(tonumber(value), 2147483647)
  local done = call('set', mark, drained, 'px', keep)
  if done.err then return done.err end
  if call('exists', key) == 0 then return {0, 1} end
  done = call('set', key, '0')
  if done.err then
    call('del', mark)
    return done.err
  end
  return {drained, 1}
end
)lua"}};

constinit lazy_script const semaphore_try_set{{"try_set", 2, 3, per_item::channel::given},
                                              {lua::said_before, lua::set_once, R"lua(
local function try_set(key, mark, channel, n, again, keep)
  return set_once(key, mark, channel, n, again, keep, n)
end
)lua"}};

namespace {

// Permits are a number: nobody owns them. A grant is therefore no hold; what tells a repeated request that its first
// copy ran is its mark.
class semaphore_rules final : public counted {
 public:
  semaphore_rules()
      : counted({.name = "semaphore",
                 .claims = true,
                 .hint_most = 10'000,
                 .scripts = {&semaphore_acquire, &semaphore_give_back, nullptr, nullptr, nullptr, nullptr,
                             &semaphore_leave},
                 .commands = {&semaphore_release, &semaphore_add, &semaphore_drain, &semaphore_try_set}}) {}

  command_rules rules_of(unsigned char command) const override {
    return {.persists = static_cast<semaphore_command>(command) == semaphore_command::release};
  }

  void add_keys(item const& item, words& command) const override {
    command.add(item.name);
    bool const leaves = item.what == ask::leave;
    if (item.what == ask::acquire || leaves) add_prefixed(command, "latchkey_semaphore_claim", item.name);
    if (!leaves) command.add(mark_of(item.name, item.field));
  }

  void add_arguments(item const& item, words& command) const override {
    bool const drains =
        item.what == ask::command && static_cast<semaphore_command>(item.command) == semaphore_command::drain;
    if (!drains) add_prefixed(command, "redisson_sc", item.name);
    bool const claims = item.what == ask::acquire || item.what == ask::leave;
    if (claims) command.add(item.field.substr(0, item.field.rfind(':')));
    if (item.what == ask::leave) return;
    if (item.what == ask::acquire && !item.argument.empty())
      command.add(std::to_string(item.amount) + '/' + std::string(item.argument));
    else if (item.what != ask::release)
      command.add(item.amount);
    if (item.what == ask::acquire) command.add(std::int64_t{item.wait > 0});
    if (item.what != ask::release) command.add(std::int64_t{item.repeated});
    command.add(mark_time);
  }

  outcome read(ask what, item const& item, reply const& answer) const override {
    if (what == ask::leave) return read_given_back(answer);
    auto made = what == ask::acquire   ? read_taken(answer)
                : what == ask::release ? read_given_back(answer)
                : what == ask::command ? read_done(answer)
                                       : outcome{};
    // Only a repeated request asks whether it ran, and then nothing else.
    if (made.what == outcome::type::unseen && !item.repeated) return {};
    // Nothing was taken, or the mark of what was taken is gone.
    if (what == ask::release && made.what == outcome::type::absent) made.what = outcome::type::unseen;
    return made;
  }
};

}  // namespace

kind const& semaphore_kind() { return lasting<semaphore_rules>(); }

}  // namespace latchkey::detail
