#pragma once

namespace latchkey {

class client;
class distributed_lock;
class lease;
class read_write_lock;
class std_mutex;

namespace detail {
class core;
class kind;
class lease_state;
struct lock_key;
}  // namespace detail

}  // namespace latchkey
