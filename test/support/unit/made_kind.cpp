#include <support/unit/made_kind.hpp>
#include <support/unit/stepped_server.hpp>
#include <wire/commands.hpp>
#include <wire/item.hpp>
#include <wire/script.hpp>

#include <stdexcept>

namespace latchkey::test {

using detail::ask;
using detail::verdict;

namespace {

// Whom `free` does not keep out gets a field of its own; the key lives as long as the longest needs.
constexpr auto shared_acquire = R"lua(
local function item(key, field, target, lease)
  local own, left = call('hget', key, field), call('pttl', key)
  if not own and target ~= '1' then return -4 end
  if not own and not free(key, field) then return left end
  call('hset', key, field, target)
  if left < tonumber(lease) then call('pexpire', key, lease) end
  return -3
end
)lua";

constexpr auto shared_release = R"lua(
local function item(key, channel, field, target)
  if call('hexists', key, field) == 0 then return -8 end
  if target ~= '0' then
    call('hset', key, field, target)
    return -7
  end
  call('hdel', key, field)
  call(publish, channel, '0')
  return -5
end
)lua";

constexpr auto tell_first = R"lua(
local function tell_first(key)
  local head = call('lindex', 'queue:' .. key, 0)
  if head and call('exists', key) == 0 then call('publish', 'made:' .. key .. ':' .. head, '0') end
end
)lua";

// What comes before the scripts of a kind, so that no other one has the same.
std::string next_mark() {
  static int number = 0;
  return "-- made " + std::to_string(++number) + "\n";
}

}  // namespace

made_scripts three_holders() {
  return {{ask::acquire, std::string("local function free(key) return call('hlen', key) < 3 end") + shared_acquire},
          {ask::release, shared_release}};
}

made_scripts two_sides() {
  constexpr auto free = R"lua(
local function owner(field) return (string.gsub(field, ':write$', '')) end
local function free(key, field)
  for _, other in ipairs(call('hkeys', key)) do
    local alone = other ~= owner(other) or field ~= owner(field)
    if alone and owner(other) ~= owner(field) then return false end
  end
  return true
end
)lua";
  return {{ask::acquire, std::string(free) + shared_acquire}, {ask::release, shared_release}};
}

made_scripts a_queue() {
  constexpr auto acquire = R"lua(
local function item(key, field, target, lease, wait)
  local queue, own = 'queue:' .. key, call('hexists', key, field) == 1
  if target ~= '1' and not own then return -4 end
  local head = call('lindex', queue, 0)
  local turn = call('exists', key) == 0 and (not head or head == field)
  if not own and not turn then
    if tonumber(wait) > 0 and not call('lpos', queue, field) then call('rpush', queue, field) end
    return math.max(call('pttl', key), 0)
  end
  call('lrem', queue, 0, field)
  call('hset', key, field, target)
  call('pexpire', key, lease)
  return -3
end
)lua";
  constexpr auto release = R"lua(
local function item(key, channel, field, target)
  if call('hexists', key, field) == 0 then return -8 end
  if target ~= '0' then
    call('hset', key, field, target)
    return -7
  end
  call('del', key)
  tell_first(key)
  return -5
end
)lua";
  constexpr auto leave = R"lua(
local function item(key, field)
  local there = call('lrem', 'queue:' .. key, 0, field)
  tell_first(key)
  return there > 0 and -5 or -8
end
)lua";
  return {{ask::acquire, acquire},
          {ask::release, std::string(tell_first) + release},
          {ask::leave, std::string(tell_first) + leave}};
}

made_scripts some_places() {
  constexpr auto acquire = R"lua(
local function item(key, field, amount, again)
  local mark = 'mark:' .. field
  if again == '1' then return call('exists', mark) == 1 and -3 or -11 end
  local left = (call('get', key) or 0) - amount
  if left < 0 then return 1000 end
  call('set', key, left)
  call('set', mark, amount, 'px', 20000)
  return left == 0 and {-3, 1000} or -3
end
)lua";
  constexpr auto give_back = R"lua(
local function item(key, channel, field)
  local taken = call('get', 'mark:' .. field)
  if not taken then return -8 end
  call('incrby', key, taken)
  call('del', 'mark:' .. field)
  call(publish, channel, '0')
  return -5
end
)lua";
  constexpr auto add = R"lua(
local function item(key, field, amount, again)
  local mark = 'mark:' .. field
  if again == '1' then return call('exists', mark) == 1 and {tonumber(call('get', key)), 1} or -11 end
  local value = call('incrby', key, amount)
  call('set', mark, '0', 'px', 20000)
  call('publish', 'made:' .. key, '0')
  return {value, 1}
end
)lua";
  return {{ask::acquire, acquire}, {ask::release, give_back}, {ask::command, add}};
}

made_kind::made_kind(traits t, made_scripts const& own) : kind(t) {
  std::string const mark = next_mark();
  auto const as_reentrant = [&](detail::script const& one) {
    return new detail::script(mark + std::string(one.text()), one.publishes());
  };
  all_ = as_reentrant(*detail::reentrant_kind().acquire_all());
  for (auto const& [what, lua] : own) {
    auto const has = what == ask::release ? detail::per_item::channel::given : detail::per_item::channel::none;
    int const arguments = what == ask::leave ? 1 : what == ask::acquire && t.own_channel ? 4 : 3;
    scripts_[static_cast<std::size_t>(what)] =
        &detail::lazy_script({"item", 1, arguments, has}, {mark, std::string_view(lua)})();
  }
  for (ask what : {ask::acquire, ask::release, ask::hand_off, ask::renew, ask::extend, ask::force_unlock})
    if (auto const*& one = scripts_[static_cast<std::size_t>(what)]; !one)
      one = as_reentrant(detail::reentrant_kind().script_for(what));
  name_scripts(*this, "made_");
}

std::string made_kind::channel(std::string_view name, std::string_view field) const {
  std::string made = "made:" + std::string(name);
  if (rules().own_channel) made += ":" + std::string(field);
  return made;
}

void made_kind::add_field(std::string& out, std::string_view client_id, std::uint64_t owner, unsigned char mode) const {
  kind::add_field(out, client_id, owner, mode);
  if (mode == 1) out += ":write";
}

detail::script const& made_kind::script_for(ask what) const {
  auto const* const found = scripts_.at(static_cast<std::size_t>(what));
  if (!found) throw std::logic_error("this kind has no such script");
  return *found;
}

void made_kind::add_keys(detail::item const& one, detail::words& command) const { command.add(one.name); }

void made_kind::add_arguments(detail::item const& one, detail::words& command) const {
  if (one.what == ask::leave) return command.add(one.field);
  if (rules().remembers > 0) {
    if (one.what == ask::release) command.add(channel(one.name, one.field));
    command.add(one.field);
    command.add(one.amount);
    return command.add(std::int64_t{one.repeated});
  }
  std::size_t const first = command.size();
  detail::reentrant_kind().add_arguments(one, command);
  if (one.what == ask::release || one.what == ask::hand_off || one.what == ask::force_unlock)
    command[first] = channel(one.name, one.field);
  if (rules().own_channel && one.what == ask::acquire) command.add(one.wait);
}

detail::outcome made_kind::read(ask what, detail::item const& one, reply const& answer) const {
  if (what == ask::command) return detail::read_done(answer);
  if (what == ask::acquire && rules().remembers > 0) return detail::read_taken(answer);
  if (what != ask::leave) return detail::reentrant_kind().read(what, one, answer);
  detail::outcome made;
  made.what = detail::says(answer, verdict::released) ? detail::outcome::type::released : detail::outcome::type::absent;
  return made;
}

bool made_kind::wakes(std::string_view) const { return true; }

detail::kind::admission made_kind::admit(unsigned char mode, int const* live) const {
  if (rules().modes == 1) return live[0] > 0 ? admission::at_once : admission::queue;
  if (mode == 1 && live[1] == 0 && live[0] > 0) return admission::would_deadlock;
  return live[mode] > 0 || live[1] > 0 ? admission::at_once : admission::queue;
}

detail::script const& made_kind::command_script(unsigned char) const { return script_for(ask::command); }

detail::kind::command_rules made_kind::rules_of(unsigned char command) const {
  return {.repeats = command != 1, .persists = command == 0};
}

}  // namespace latchkey::test
