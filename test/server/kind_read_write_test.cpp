// The read/write lock against a real server: what it writes, who gets in, and what it costs.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/worlds.hpp>

#include <future>
#include <map>
#include <string>

using namespace latchkey;
using namespace latchkey::test;
using fields = std::map<std::string, std::string>;

namespace {

struct rw_world : common_world {
  read_write_lock rw = own.get_read_write_lock(name);
  distributed_lock reads = rw.read_lock(), writes = rw.write_lock();
  client other{common_server().uri(), steady_config()};
  read_write_lock theirs = other.get_read_write_lock(name);

  std::string stamp(owner who, int number) const {
    return "{" + name + "}:" + field(who) + ":rwlock_timeout:" + std::to_string(number);
  }
  std::int64_t ttl(std::string const& key) { return admin.integer("PTTL", key); }
};

}  // namespace

TEST_CASE("read/write lock: a read hold is a hash with mode and count, and a key with its lease", "[server][kind]") {
  rw_world w;
  auto const me = owner::this_thread();
  w.reads.lock();
  CHECK(w.admin.hash(w.name) == fields{{"mode", "read"}, {w.field(me), "1"}});
  CHECK(w.admin.text("GET", w.stamp(me, 1)) == "1");
  CHECK(w.ttl(w.name) > 20'000);
  CHECK(w.ttl(w.stamp(me, 1)) > 20'000);
  w.reads.lock(5s);
  CHECK(w.admin.hash(w.name) == fields{{"mode", "read"}, {w.field(me), "2"}});
  CHECK(w.ttl(w.stamp(me, 2)) <= 5'000);
  CHECK(w.ttl(w.name) > 20'000);
  w.reads.unlock();
  CHECK(w.admin.integer("EXISTS", w.stamp(me, 2)) == 0);
  w.reads.unlock();
  CHECK(w.admin.integer("EXISTS", w.name, w.stamp(me, 1)) == 0);
}
