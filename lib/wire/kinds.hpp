#pragma once

#include <wire/kind.hpp>

// The kinds beside the reentrant lock. None is ever destroyed: a client of static storage may still release while the
// process exits.
namespace latchkey::detail {

kind const& non_reentrant_kind();     // Redisson's RedissonNonReentrantLock
kind const& spin_kind();              // Redisson's RedissonSpinLock
kind const& fenced_kind();            // Redisson's RedissonFencedLock
kind const& seeded_fenced_kind();     // the same; a missing counter begins at the server's time
kind const& plain_kind();             // SET NX PX and compare-and-delete, as other libraries do
kind const& read_write_kind();        // both sides of Redisson's RReadWriteLock: mode 0 reads, mode 1 writes
kind const& fair_kind();              // Redisson's RedissonFairLock
kind const& semaphore_kind();         // Redisson's RedissonSemaphore
kind const& permit_semaphore_kind();  // RedissonPermitExpirableSemaphore
kind const& count_down_latch_kind();  // RedissonCountDownLatch

}  // namespace latchkey::detail
