#include <engine/guards.hpp>

#include <pthread.h>

#include <atomic>

namespace latchkey::detail {

namespace {

constinit std::atomic<std::uint32_t> generation{0};

void in_child() { generation.fetch_add(1, std::memory_order_relaxed); }

std::uint32_t watched_generation() {
  static int const registered = ::pthread_atfork(nullptr, nullptr, in_child);
  static_cast<void>(registered);
  return generation.load(std::memory_order_relaxed);
}

}  // namespace

fork_guard::fork_guard() : generation_(watched_generation()) {}

bool fork_guard::forked() const noexcept { return generation.load(std::memory_order_relaxed) != generation_; }

}  // namespace latchkey::detail
