#pragma once

#include <latchkey/read_write_lock.hpp>
#include <support/redisson_read_write.hpp>
#include <support/worlds.hpp>

namespace latchkey::test {

// Two clients of the common server and both sides of one read/write lock.
struct rw_world : common_world {
  read_write_lock rw = own.get_read_write_lock(name);
  distributed_lock reads = rw.read_lock(), writes = rw.write_lock();
  client other{common_server().uri(), steady_config()};
  distributed_lock their_reads = other.get_read_write_lock(name).read_lock();
  distributed_lock their_writes = other.get_read_write_lock(name).write_lock();
  owner me = owner::this_thread();

  // The key of a read hold of this client.
  std::string stamp(owner who, int number) const {
    return "{" + name + "}:" + field(who) + ":rwlock_timeout:" + std::to_string(number);
  }
  std::int64_t ttl(std::string const& key) { return admin.integer("PTTL", key); }
  std::int64_t listeners() {
    return admin.ok("PUBSUB", "NUMSUB", "redisson_rwlock:{" + name + "}").elements[1].integer;
  }
  redisson_read_write redisson(int thread = 57) const { return {common_server(), name, thread}; }
};

// Is the time to live about what was asked for, on a machine that may be slow?
inline bool about(std::int64_t ttl, std::chrono::milliseconds lease) {
  return ttl <= lease.count() && ttl > lease.count() - std::chrono::milliseconds(5s * slowness).count();
}

}  // namespace latchkey::test
