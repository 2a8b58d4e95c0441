#pragma once

#include <latchkey/export.hpp>

#include <algorithm>
#include <array>
#include <atomic>
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

// A function that is called for each item of a request, with keys and arguments of the item's own. A channel is no key:
// a command with several keys is refused while their slot moves to another node and one of them is not there.
struct per_item {
  // Behind the keys and before the other arguments: nothing; nil, for those who have none; the item's channel, which is
  // its first argument, and `publish` is the command to use it with.
  enum class channel : unsigned char { none, nil, given };

  std::string_view function{};  // none: the fragments are the whole script
  int keys = 0;
  int arguments = 0;  // beside the channel
  channel has = channel::none;
};

// A script that is made when it is first asked for, and never destroyed: a client of static storage may still release
// while the process exits.
class lazy_script {
 public:
  // Fragments in the order in which they use each other, behind lua::call.
  constexpr lazy_script(per_item const& loop, std::initializer_list<std::string_view> fragments) : loop_(loop) {
    std::copy(fragments.begin(), fragments.end(), fragments_.begin());
  }
  constexpr explicit lazy_script(std::initializer_list<std::string_view> whole) : lazy_script(per_item(), whole) {}

  script const& operator()() const {
    auto const* const made = made_.load(std::memory_order_acquire);
    return made ? *made : make();
  }

 private:
  script const& make() const;

  per_item loop_;
  std::array<std::string_view, 4> fragments_{};
  mutable std::atomic<script const*> made_{nullptr};
};

// Asks whether scripts run at all: has no keys and changes nothing.
extern lazy_script const no_keys_script;

}  // namespace latchkey::detail
