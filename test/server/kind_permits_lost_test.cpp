// Answers that are lost before or after the request ran: nothing counts twice, nothing is forgotten.
#include <latchkey/latchkey.hpp>
#include <support/catch.hpp>
#include <support/errors.hpp>
#include <support/fault_proxy.hpp>
#include <support/worlds.hpp>

#include <functional>
#include <string>

using namespace latchkey;
using namespace latchkey::test;

namespace {

struct losing_world {
  losing_world() {
    auto const lock = own.get_lock("warm");
    // Both lanes are up, and the server knows the scripts of a lock.
    wait_until([&] {
      lock.lock();
      lock.unlock();
      return proxy.open() >= 2;
    });
  }
  static config settings() {
    auto made = steady_config();
    made.retry_delay = 20ms;
    return made;
  }
  std::string value(char const* key) { return admin.text("GET", key); }

  redis_server server;
  fault_proxy proxy{server.where()};
  raw_redis admin = server.admin();
  client own{proxy.uri(), settings()};
  semaphore permits = own.get_semaphore("s");
  permit_semaphore leased = own.get_permit_semaphore("p");
  count_down_latch latch = own.get_count_down_latch("l");
};

// One call, made with its answer or the request itself cut off; `prepare` runs before, undisturbed, and runs the
// script once so that the server knows it.
struct step {
  char const* name;
  std::function<void(losing_world&)> prepare;
  std::function<void(losing_world&)> call;
  std::function<void(losing_world&)> check;
};

std::string taken_id;

step const steps[] = {
    {"semaphore acquire",
     [](losing_world& w) {
       w.permits.try_set_permits(5);
       w.permits.acquire();
     },
     [](losing_world& w) { w.permits.acquire(2); }, [](losing_world& w) { CHECK(w.value("s") == "2"); }},
    {"semaphore try_acquire of the last", [](losing_world& w) { w.permits.try_set_permits(1); },
     [](losing_world& w) { CHECK(w.permits.try_acquire()); }, [](losing_world& w) { CHECK(w.value("s") == "0"); }},
    {"semaphore release", [](losing_world& w) { w.permits.release(); }, [](losing_world& w) { w.permits.release(3); },
     [](losing_world& w) { CHECK(w.value("s") == "4"); }},
    {"semaphore add_permits", [](losing_world& w) { w.permits.add_permits(2); },
     [](losing_world& w) { w.permits.add_permits(3); }, [](losing_world& w) { CHECK(w.value("s") == "5"); }},
    {"semaphore drain_permits",
     [](losing_world& w) {
       w.permits.drain_permits();
       w.permits.release(7);
     },
     [](losing_world& w) { CHECK(w.permits.drain_permits() == 7); },
     [](losing_world& w) { CHECK(w.value("s") == "0"); }},
    {"semaphore try_set_permits", [](losing_world& w) { w.own.get_semaphore("x").try_set_permits(1); },
     [](losing_world& w) { CHECK(w.permits.try_set_permits(4)); }, [](losing_world& w) { CHECK(w.value("s") == "4"); }},
    {"permit acquire",
     [](losing_world& w) {
       w.leased.try_set_permits(3);
       w.leased.release(w.leased.acquire());
     },
     [](losing_world& w) { taken_id = w.leased.acquire(); },
     [](losing_world& w) {
       CHECK(w.value("p") == "2");
       CHECK(w.leased.acquired_permits() == 1);
       CHECK(w.leased.try_release(taken_id));
     }},
    {"permit try_release",
     [](losing_world& w) {
       w.leased.try_set_permits(3);
       w.leased.release(w.leased.acquire());
       taken_id = w.leased.acquire();
     },
     [](losing_world& w) { CHECK(w.leased.try_release(taken_id)); },
     [](losing_world& w) { CHECK(w.value("p") == "3"); }},
    {"permit set_permits",
     [](losing_world& w) {
       w.leased.set_permits(2);
       taken_id = w.leased.acquire();
     },
     [](losing_world& w) { w.leased.set_permits(6); }, [](losing_world& w) { CHECK(w.value("p") == "5"); }},
    {"permit add_permits", [](losing_world& w) { w.leased.add_permits(1); },
     [](losing_world& w) { w.leased.add_permits(2); }, [](losing_world& w) { CHECK(w.value("p") == "3"); }},
    {"permit try_set_permits", [](losing_world& w) { w.own.get_permit_semaphore("x").try_set_permits(1); },
     [](losing_world& w) { CHECK(w.leased.try_set_permits(4)); }, [](losing_world& w) { CHECK(w.value("p") == "4"); }},
    {"permit released by its object", [](losing_world& w) { w.leased.try_set_permits(3); },
     [](losing_world& w) {
       permit one = w.leased.acquire_permit();
       CHECK(one);
       CHECK(one.release() == release_result::released);
     },
     [](losing_world& w) { CHECK(w.value("p") == "3"); }},
    {"latch count_down",
     [](losing_world& w) {
       w.latch.try_set_count(5);
       w.latch.count_down();
     },
     [](losing_world& w) { w.latch.count_down(); }, [](losing_world& w) { CHECK(w.latch.count() == 3); }},
    {"latch try_set_count", [](losing_world& w) { w.own.get_count_down_latch("x").try_set_count(1); },
     [](losing_world& w) { CHECK(w.latch.try_set_count(2)); }, [](losing_world& w) { CHECK(w.latch.count() == 2); }},
    {"latch wait", [](losing_world& w) { w.latch.wait(); }, [](losing_world& w) { w.latch.wait(); },
     [](losing_world& w) { CHECK(w.latch.count() == 0); }},
};

}  // namespace

TEST_CASE("permits and latches: a request whose answer was lost counts once", "[server][kind]") {
  for (auto way : {fault_proxy::way::replies, fault_proxy::way::requests})
    for (auto const& one : steps) {
      INFO(one.name << (way == fault_proxy::way::replies ? ", after it ran" : ", before it ran"));
      losing_world w;
      one.prepare(w);
      w.proxy.cut_after(way, 0);
      one.call(w);
      CHECK(w.proxy.cut_happened());
      one.check(w);
      CHECK(w.own.snapshot().kills >= 1);
    }
}
