#pragma once

#include <latchkey/boost_guard.hpp>
#include <latchkey/export.hpp>

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace latchkey {

namespace detail {
struct owner_access;
}

/// Who holds a lock: a number that is unique in this process, over all clients and threads.
///
/// On the server an owner shows as `uuid:number`, the UUID being the client's. Two tasks that use one
/// owner share its hold: nothing excludes them from each other.
class LATCHKEY_EXPORT owner {
 public:
  /// A new owner, never given out before.
  static owner make() noexcept;

  /// The owner of the calling thread: the same at every call, never reused for another thread. When a thread ends that
  /// holds by `lock()`, its holds are renewed no longer: an event `holder_thread_ended`, and they end with their
  /// leases.
  static owner this_thread() noexcept;

  /// The same one.
  friend bool operator==(owner, owner) noexcept = default;
  /// By number, which is that of making.
  friend std::strong_ordering operator<=>(owner, owner) noexcept = default;

 private:
  friend struct detail::owner_access;
  friend struct std::hash<owner>;
  explicit owner(std::uint64_t number) noexcept : number_(number) {}
  std::uint64_t number_;
};

/// The number as it stands on the server behind the colon.
LATCHKEY_EXPORT std::string to_string(owner who);

namespace detail {
struct owner_access {
  static owner from(std::uint64_t number) noexcept { return owner{number}; }
  static std::uint64_t number(owner who) noexcept { return who.number_; }
};
}  // namespace detail

}  // namespace latchkey

template <>
struct std::hash<latchkey::owner> {
  std::size_t operator()(latchkey::owner who) const noexcept { return std::hash<std::uint64_t>{}(who.number_); }
};
