#pragma once

#include <latchkey/boost_guard.hpp>

namespace latchkey {

class client;
class count_down_latch;
class distributed_lock;
class lease;
class permit;
class permit_semaphore;
class read_write_lock;
class semaphore;
class std_mutex;
class std_shared_mutex;
struct holder;
struct lock_state;

namespace detail {
class core;
class kind;
class lease_state;
struct lock_key;
}  // namespace detail

}  // namespace latchkey
