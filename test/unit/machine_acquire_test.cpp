#include <support/catch.hpp>
#include <support/unit/sweep.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

TEST_CASE("a free lock: one call to take it, one to release it") {
  world w;
  task& first = w.acquire(1);
  w.await(first);
  REQUIRE(first.granted());
  w.await(w.release(first));
  task& second = w.acquire(2);
  w.await(second);
  task& ended = w.release(second);
  w.await(ended);
  CHECK(ended.released == release_result::released);
  CHECK(w.server.ran("EVALSHA acquire") == 2);
  CHECK(w.server.ran("EVALSHA release") == 2);
  CHECK(w.server.ran("EVAL") == 4);
  CHECK(w.server.ran("SUBSCRIBE") == 0);
  w.finish();
}

TEST_CASE("sweep: a free lock is taken and released") {
  sweep({.play = [](world& w) {
    task& one = w.acquire(1);
    w.await(one);
    w.expect(one.granted(), "granted");
    if (!one.granted()) return;
    task& ended = w.release(one);
    w.await(ended);
    w.expect(ended.released == release_result::released, "released");
  }});
}

TEST_CASE("sweep: a free lock on the direct lane") {
  sweep({.play = [](world& w) {
    for (int i = 0; i < 3; ++i) {
      task& one = w.acquire(1, {.direct = true});
      w.await(one);
      w.expect(one.granted(), "granted");
      if (!one.granted()) continue;
      task& ended = w.release(one, true);
      w.await(ended);
      w.expect(ended.released == release_result::released, "released");
      w.run();
    }
  }});
}
