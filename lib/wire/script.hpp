#pragma once

#include <latchkey/export.hpp>

#include <initializer_list>
#include <string>
#include <string_view>

namespace latchkey::detail {

// A Lua script and its SHA-1, by which EVALSHA calls it.
class LATCHKEY_EXPORT script {  // for latchkey::testing, beside a shared library
 public:
  explicit script(std::string_view text, bool publishes = false);

  std::string_view text() const { return text_; }
  std::string_view sha() const { return sha_; }
  // The last argument of a call, behind those of all items, is the command to publish with: see publisher.
  bool publishes() const { return publishes_; }

 private:
  std::string text_;
  std::string sha_;  // 40 hexadecimal digits, lower case
  bool publishes_;
};

// SPUBLISH reaches who subscribed at the node of the channel's slot, PUBLISH who subscribed anywhere.
constexpr std::string_view publisher(bool sharded) { return sharded ? "spublish" : "publish"; }

// Asks whether scripts run at all: has no keys and changes nothing.
script const& no_keys_script();

// Lua that the scripts of several kinds are made of. A refusal is a value that the script looks at, never an error.

// A function that is called for each item of a request, with keys and arguments of the item's own. A channel is no key:
// a command with several keys is refused while their slot moves to another node and one of them is not there.
struct per_item {
  // Behind the keys and before the other arguments: nothing; nil, for those who have none; the item's channel, which is
  // its first argument, and `publish` is the command to use it with.
  enum class channel : unsigned char { none, nil, given };

  std::string_view function;
  int keys;
  int arguments;  // beside the channel
  channel has = channel::none;
};

// Fragments in the order in which they use each other, behind `local call = redis.pcall`. Never destroyed: a client of
// static storage may still release while the process exits. Without a loop the last fragment has its own.
script const& new_script(per_item const& loop, std::initializer_list<std::string_view> fragments);
script const& new_script(std::initializer_list<std::string_view> fragments);

namespace lua {

// free(key, channel), of scripts with a channel or nil for it: deletes the key and tells so; answers a verdict, or the
// words of an error.
extern std::string_view const free;
// count_to(key, field, own, target, lease, left, timed): makes the count of a hold, which is `own`, the target. With
// `timed` the key lives for the lease. Answers nothing, or the words of an error.
extern std::string_view const count_to;
// renew(key, owner, lease): only raises the time to live. `refusal(key, owner)` says why it cannot be moved, if so.
extern std::string_view const renew;
// extend(key, owner, lease): sets it.
extern std::string_view const extend;
// said_before(mark): what a request with this mark has answered already.
extern std::string_view const said_before;
// set_once(key, mark, channel, n, again, keep, said): sets a number that is not there, and publishes `said`.
extern std::string_view const set_once;

}  // namespace lua

}  // namespace latchkey::detail
