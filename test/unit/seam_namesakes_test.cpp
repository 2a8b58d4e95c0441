#include <support/catch.hpp>
#include <support/unit/made_kind.hpp>
#include <support/unit/stories.hpp>

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

// Two kinds that keep the same data under one name, as those of the reentrant lock's family do.

namespace {

made_kind const& first() {
  static made_kind const the_one({.name = "first"});
  return the_one;
}

made_kind const& second() {
  static made_kind const the_one({.name = "second"});
  return the_one;
}

struct two_kinds : world {
  // What the owner hears who asks for the name as the second kind.
  error_code asks(std::uint64_t owner) {
    task& asked = once(owner, {.which = &second()});
    bool const at_once = asked.done();
    await(asked);
    CHECK(at_once == (asked.error == errc::bad_argument));
    if (at_once) CHECK(asked.text == "the owner has this name already as a first");
    return asked.error;
  }
  std::size_t tries() const { return server.ran("EVALSHA made_acquire"); }
};

}  // namespace

TEST_CASE("seam: an owner who holds a name is refused it through another kind, and nothing is sent") {
  two_kinds w;
  task& a = granted(w, w.acquire(1, {.which = &first()}));
  CHECK(w.asks(1) == errc::bad_argument);
  w.run();
  CHECK(w.tries() == 1);
  CHECK(w.server.count("k", w.field(1)) == 1);
  CHECK(a.trusted(w.now));
  task& other = granted(w, w.acquire(1, {.name = "elsewhere", .which = &second()}));
  w.await(w.release(other));
  task& twice = granted(w, w.acquire(1, {.which = &first()}));
  w.await(w.release(twice));
  CHECK(w.asks(1) == errc::bad_argument);
  w.await(w.release(a));
  task& b = granted(w, w.acquire(1, {.which = &second()}));
  w.await(w.release(b));
  w.finish();
}

TEST_CASE("seam: an owner who waits for a name, or tries, is refused it through another kind") {
  two_kinds w;
  task& tries = w.acquire(1, {.which = &first()});
  CHECK(w.asks(1) == errc::bad_argument);
  w.await(tries);
  CHECK(w.tries() == 1);
  task& waits = w.acquire(2, {.which = &first()});
  w.run();
  CHECK(w.asks(2) == errc::bad_argument);
  w.cancel(waits);
  w.run();
  CHECK(w.asks(2) == error_code());  // busy, and that is no error
  w.finish();
}

TEST_CASE("seam: an owner whose release is under way is refused the name through another kind until its answer") {
  two_kinds w;
  task& a = granted(w, w.acquire(1, {.which = &first()}));
  w.drop(a);
  CHECK(w.asks(1) == errc::bad_argument);
  w.run();
  CHECK(w.tries() == 1);
  task& b = granted(w, w.acquire(1, {.which = &second()}));
  w.release(b);
  w.finish();
}

TEST_CASE("seam: a hold that was lost does not keep its owner from another kind") {
  two_kinds w;
  w.watch_holds = false;
  task& a = granted(w, w.acquire(1, {.lease = 500ms, .which = &first()}));
  w.pass(600ms);
  CHECK(a.losses == 1);
  task& b = granted(w, w.acquire(1, {.which = &second()}));
  w.release(b);
  w.finish();
}

TEST_CASE("seam: different owners exclude each other through different kinds") {
  two_kinds w;
  task& a = granted(w, w.acquire(1, {.which = &first()}));
  task& b = w.acquire(2, {.which = &second()});
  w.run();
  CHECK_FALSE(b.done());
  w.release(a);
  w.run();
  CHECK(b.granted());
  w.finish();
}

TEST_CASE("seam: names that are swept forget their namesakes") {
  two_kinds w;
  for (std::uint64_t i = 0; i < 3'000; ++i) {
    std::string const name = "n" + std::to_string(i);
    for (made_kind const* which : {&first(), &second()}) {
      task& one = granted(w, w.acquire(1, {.name = name, .which = which}));
      w.await(w.release(one));
    }
    w.keeps_history = false;
  }
  w.finish();
}
