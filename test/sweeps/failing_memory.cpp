#include <sweeps/failing_memory.hpp>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

enum class whose { nobodys, one_threads, everybodys };

std::atomic<whose> armed{whose::nobodys};
thread_local bool this_threads = false;
std::atomic<bool> failed{false};
std::atomic<long> left{0};

bool is_to_fail() {
  whose const now = armed.load(std::memory_order_relaxed);
  if (now == whose::nobodys || (now == whose::one_threads && !this_threads) || left.fetch_sub(1) != 0) return false;
  failed = true;
  return true;
}

void* allocate(std::size_t size, std::size_t alignment) {
  if (is_to_fail()) throw std::bad_alloc();
  if (size == 0) size = 1;
  void* const made = alignment == 0 ? std::malloc(size)
                                    : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (!made) throw std::bad_alloc();
  return made;
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size, 0); }
void* operator new[](std::size_t size) { return allocate(size, 0); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
// Whoever asks like this does without, and nobody is to be told: a buffer of std::stable_sort.
void* operator new(std::size_t size, std::nothrow_t const&) noexcept { return std::malloc(size == 0 ? 1 : size); }
void operator delete(void* one) noexcept { std::free(one); }
void operator delete[](void* one) noexcept { std::free(one); }
void operator delete(void* one, std::size_t) noexcept { std::free(one); }
void operator delete[](void* one, std::size_t) noexcept { std::free(one); }
void operator delete(void* one, std::align_val_t) noexcept { std::free(one); }
void operator delete[](void* one, std::align_val_t) noexcept { std::free(one); }
void operator delete(void* one, std::size_t, std::align_val_t) noexcept { std::free(one); }
void operator delete[](void* one, std::size_t, std::align_val_t) noexcept { std::free(one); }
void operator delete(void* one, std::nothrow_t const&) noexcept { std::free(one); }

namespace latchkey::test {

void failing_memory::fail_after(long n) {
  failed = false;
  left = n;
  this_threads = true;
  armed = whose::one_threads;
}

void failing_memory::fail_anywhere_after(long n) {
  failed = false;
  left = n;
  armed = whose::everybodys;
}

bool failing_memory::stop() {
  armed = whose::nobodys;
  this_threads = false;
  return failed;
}

}  // namespace latchkey::test
