#pragma once

#include <wire/kind.hpp>

// The kinds beside the reentrant lock. None of these is ever destroyed. One with a parameter of many values is made by
// std::make_shared and returned so: see kind.
namespace latchkey::detail {

kind const& non_reentrant_kind();  // Redisson's RedissonNonReentrantLock
kind const& spin_kind();           // Redisson's RedissonSpinLock
// Redisson's RedissonFencedLock. `seeded`: a missing counter begins at the server's time.
kind const& fenced_kind(bool seeded = false);
kind const& plain_kind();             // SET NX PX and compare-and-delete, as other libraries do
kind const& read_write_kind();        // both modes of Redisson's RReadWriteLock: mode 0 reads, mode 1 writes
kind const& fair_kind();              // Redisson's RedissonFairLock
kind const& semaphore_kind();         // Redisson's RedissonSemaphore
kind const& permit_semaphore_kind();  // RedissonPermitExpirableSemaphore
kind const& count_down_latch_kind();  // RedissonCountDownLatch

}  // namespace latchkey::detail
