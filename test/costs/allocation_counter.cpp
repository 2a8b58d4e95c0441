#include <costs/allocation_counter.hpp>

#include <cstddef>

namespace {

// Not to be allocated itself.
[[gnu::tls_model("initial-exec")]] thread_local std::uint64_t allocations = 0;

}  // namespace

// What glibc's own functions are called beside. A program's definition of the plain names serves all its libraries.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);

[[gnu::visibility("default")]] void* malloc(std::size_t size) {
  ++allocations;
  return __libc_malloc(size);
}

[[gnu::visibility("default")]] void* calloc(std::size_t count, std::size_t size) {
  ++allocations;
  return __libc_calloc(count, size);
}

[[gnu::visibility("default")]] void* realloc(void* old, std::size_t size) {
  ++allocations;
  return __libc_realloc(old, size);
}
}

std::uint64_t latchkey::test::allocations_of_this_thread() noexcept { return allocations; }
