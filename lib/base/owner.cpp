#include <atomic>
#include <latchkey/owner.hpp>

namespace latchkey {
namespace {

// From 1: zero stands for nobody.
std::atomic<std::uint64_t> next{1};

}  // namespace

owner owner::make() noexcept { return owner(next.fetch_add(1, std::memory_order_relaxed)); }

owner owner::this_thread() noexcept {
  thread_local owner const mine = make();
  return mine;
}

std::string to_string(owner who) { return std::to_string(detail::owner_access::number(who)); }

}  // namespace latchkey
