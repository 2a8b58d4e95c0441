// Readers and writers of four processes on one lock: never a reader beside a writer, never two writers, and both make
// progress. Three seconds; LATCHKEY_READ_WRITE_SECONDS=60 in the environment makes it as many.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/child_process.hpp>
#include <support/configs.hpp>
#include <support/redis_server.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <sys/mman.h>

using namespace latchkey;
using namespace latchkey::test;

namespace {

constexpr int processes = 4, readers = 3, writers = 1;  // threads of each process

// One stay inside the lock, on the clock that all processes of a machine share. It begins after the lock was granted
// and ends before it is given back, so that two that exclude each other never overlap.
struct stay {
  std::int64_t begin = 0, end = 0;
  int process = 0;
  bool writes = false;
};

// What all processes write into: memory that a fork shares.
struct history {
  static constexpr std::size_t most = 1'000'000;
  std::atomic<std::size_t> used{0};
  std::atomic<int> inside_readers{0}, inside_writers{0};
  std::atomic<int> met{0};  // seen at once by those inside
  stay all[most];
};

std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

void remember(history& shared, stay const& one) {
  auto const at = shared.used.fetch_add(1);
  if (at < history::most) shared.all[at] = one;
}

void read(history& shared, int process, distributed_lock const& side) {
  side.lock();
  stay one{.begin = now(), .process = process};
  ++shared.inside_readers;
  if (shared.inside_writers != 0) ++shared.met;
  std::this_thread::yield();
  if (shared.inside_writers != 0) ++shared.met;
  --shared.inside_readers;
  one.end = now();
  side.unlock();
  remember(shared, one);
}

// With a downgrade the stay goes on as that of a reader.
void write(history& shared, int process, read_write_lock const& rw, bool down) {
  rw.write_lock().lock();
  stay one{.begin = now(), .process = process, .writes = true};
  if (++shared.inside_writers != 1 || shared.inside_readers != 0) ++shared.met;
  std::this_thread::yield();
  if (shared.inside_writers != 1 || shared.inside_readers != 0) ++shared.met;
  if (down) rw.read_lock().lock();
  shared.inside_readers += down;
  --shared.inside_writers;
  one.end = now();
  stay after{.begin = one.end, .process = process};
  rw.write_lock().unlock();
  remember(shared, one);
  if (!down) return;
  if (shared.inside_writers != 0) ++shared.met;
  --shared.inside_readers;
  after.end = now();
  rw.read_lock().unlock();
  remember(shared, after);
}

int play(history& shared, int process, std::string const& uri, std::chrono::milliseconds length) {
  client own(uri, steady_config());
  auto const rw = own.get_read_write_lock("shared");
  auto const end = clock::now() + length;
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  auto const turns = [&](auto turn) {
    try {
      for (int i = 0; clock::now() < end; ++i) turn(i);
    } catch (std::exception const&) {
      ++failed;
    }
  };
  for (int i = 0; i < readers; ++i)
    threads.emplace_back([&] {
      // Readers of all processes that never leave a gap would keep writers out: that is no promise of the lock.
      turns([&](int) {
        read(shared, process, rw.read_lock());
        std::this_thread::sleep_for(2ms);
      });
    });
  for (int i = 0; i < writers; ++i)
    threads.emplace_back([&] { turns([&](int turn) { write(shared, process, rw, turn % 5 == 0); }); });
  for (auto& one : threads) one.join();
  return failed;
}

std::chrono::milliseconds length() {
  char const* const asked = std::getenv("LATCHKEY_READ_WRITE_SECONDS");
  return std::chrono::seconds(asked ? std::atoi(asked) : slowness > 1 ? 8 : 3);
}

}  // namespace

TEST_CASE("read/write lock: four processes read and write, and nobody meets whom he must not", "[stress][kind]") {
  auto* const shared = static_cast<history*>(
      ::mmap(nullptr, sizeof(history), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  REQUIRE(shared != MAP_FAILED);
  new (shared) history;
  redis_server server;
  auto const uri = server.uri();
  std::vector<std::unique_ptr<child_process>> all;
  for (int i = 0; i < processes; ++i)
    all.push_back(
        std::make_unique<child_process>([&, i](child_process::channel&) { return play(*shared, i, uri, length()); }));
  for (auto& one : all) CHECK(one->wait(length() + patience) == 0);

  std::vector<stay> seen(shared->all, shared->all + std::min<std::size_t>(shared->used, history::most));
  std::sort(seen.begin(), seen.end(), [](stay const& a, stay const& b) { return a.begin < b.begin; });
  std::int64_t last_end = 0, last_write_end = 0;
  int overlaps = 0, reads[processes] = {}, writes[processes] = {};
  for (auto const& one : seen) {
    overlaps += one.begin < (one.writes ? last_end : last_write_end);
    last_end = std::max(last_end, one.end);
    if (one.writes) last_write_end = std::max(last_write_end, one.end);
    ++(one.writes ? writes : reads)[one.process];
  }
  CHECK(overlaps == 0);
  CHECK(shared->met == 0);
  for (int i = 0; i < processes; ++i) {
    CHECK(reads[i] >= 10);
    CHECK(writes[i] >= 10);
  }
  CHECK(server.admin().integer("DBSIZE") == 0);
  ::munmap(shared, sizeof(history));
}
