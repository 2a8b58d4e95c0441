#include <engine/attachments.hpp>
#include <engine/busy_look.hpp>
#include <engine/client_end.hpp>
#include <engine/loans.hpp>
#include <support/catch.hpp>

#include <string>
#include <utility>
#include <vector>

namespace engine_parts {

using namespace latchkey;
using namespace latchkey::detail;
using namespace std::chrono_literals;

// Parts of the engine that need no mutex, socket or executor to be tried: each alone.

namespace {

constexpr instant start{std::chrono::hours(1)};

// A lane that says what the test wants.
struct said_lane {
  std::uint32_t number = 1;
  std::vector<error_code> results;
  std::string sent;
  std::vector<instant> begun;
  reply got;

  std::uint32_t serial() const { return number; }
  void take(std::string& bytes) { sent += std::exchange(bytes, {}) + ' '; }
  error_code exchange(instant now, instant end, bool over) {
    CHECK(end == start + 9s);
    CHECK_FALSE(over);
    begun.push_back(now);
    error_code const made = results.front();
    results.erase(results.begin());
    return made;
  }
  reply const& answer() const { return got; }
};

struct said_machine {
  using next = client_machine::lane_next;
  std::string bytes = "one";
  std::vector<next> nexts;
  std::string heard;

  std::string& lane_bytes(std::uint32_t) { return bytes; }
  void lane_failed(std::uint32_t serial, error_code const& why, instant, actions&) {
    CHECK(serial == 1);
    heard += why == errc::timeout ? "late " : "lost ";
  }
  next lane_answer(std::uint32_t, reply const&, instant, actions&) {
    heard += "answer ";
    bytes = "whole";
    next const made = nexts.front();
    nexts.erase(nexts.begin());
    return made;
  }
};

using said_loans = loans<said_lane>;

struct desk {
  std::shared_ptr<said_lane> lane = std::make_shared<said_lane>();
  said_machine machine;
  said_loans all;
  operation call, other;
  actions out;
  instant now = start;

  auto lend() { return all.lend(1, std::vector{&call, &other}, machine, start); }
  void drive(said_loans::loan taken) {
    all.drive(std::move(taken), start + 9s, false, [this](auto const& locked) { locked(machine, now += 1s, out); });
  }
};

}  // namespace

TEST_CASE("loans: the borrower takes the request along and gives the answer to the machine", "[unit][engine]") {
  desk r;
  r.call.where = r.other.where = operation::place::trying;
  r.all.opened(r.lane);
  auto taken = r.lend();
  CHECK(taken.serial == 1);
  CHECK(r.lane->sent == "one ");
  CHECK(r.all.of_ended_calls().empty());
  r.call.where = operation::place::idle;  // they end while their borrower sleeps
  CHECK(r.all.of_ended_calls().empty());
  r.other.where = operation::place::idle;
  CHECK(r.all.of_ended_calls() == std::vector{r.lane});
  r.lane->results = {error_code()};
  r.machine.nexts = {said_machine::next::done};
  r.drive(std::move(taken));
  CHECK(r.machine.heard == "answer ");
  CHECK(r.all.of_ended_calls().empty());
}

TEST_CASE("loans: the text of a script goes on the same loan, with a time of its own", "[unit][engine]") {
  desk r;
  r.all.opened(r.lane);
  r.lane->results = {error_code(), error_code()};
  r.machine.nexts = {said_machine::next::send_again, said_machine::next::done};
  r.drive(r.lend());
  CHECK(r.lane->sent == "one whole ");
  CHECK(r.lane->begun == std::vector{start, start + 1s});
  CHECK(r.machine.heard == "answer answer ");
}

TEST_CASE("loans: what went wrong is told, also that there is no lane any more", "[unit][engine]") {
  desk r;
  r.all.opened(r.lane);
  r.lane->results = {errc::timeout};
  r.drive(r.lend());
  CHECK(r.machine.heard == "late ");
  CHECK(r.all.end(2) == nullptr);
  CHECK(r.all.end(1) == r.lane);
  CHECK(r.all.lane(1) == nullptr);
  r.drive(r.lend());
  CHECK(r.machine.heard == "late lost ");
  r.lane->number = 2;  // another one was opened meanwhile
  r.all.opened(r.lane);
  r.drive(r.lend());
  CHECK(r.machine.heard == "late lost lost ");
  CHECK(r.all.end() == std::vector{r.lane});
}

TEST_CASE("loans: a loan whose lane the engine took back ends, whoever has the next one", "[unit][engine]") {
  desk r;
  r.all.opened(r.lane);
  r.lane->results = {error_code()};
  r.machine.nexts = {said_machine::next::taken};
  r.drive(r.lend());
  CHECK(r.all.of_ended_calls().empty());
}

namespace {

// Calls one after the other, each answered after `takes`.
struct looking {
  static constexpr nanoseconds most = 100us;
  busy_look look{most};
  instant now = start;

  // Whether it looked.
  bool call(nanoseconds takes) {
    instant const end = look.begin(now, now + 10s);
    bool const looked = end > now;
    if (looked && takes > most) look.in_vain(end);
    now += takes;
    look.end(now);
    return looked;
  }
  // How many calls go by until one looks.
  int calls_to_a_look(nanoseconds takes = 20us) {
    for (int i = 0; i < 1'000'000; ++i)
      if (call(takes)) return i;
    return -1;
  }
  // Its CPU is taken for eight milliseconds, and the answer is there when it comes back.
  void preempted() {
    look.begin(now, now + 10s);
    now += 8ms;
    look.end(now);
    now += 10us;
  }
};

}  // namespace

TEST_CASE("looking for an answer: in a run of calls only, and never beyond the call", "[unit][engine]") {
  looking a;
  CHECK(a.calls_to_a_look() == 4);
  CHECK(a.look.begin(a.now, a.now + 30us) == a.now + 30us);
  a.look.end(a.now + 10us);
  a.now += 5ms;
  CHECK(a.calls_to_a_look() == 4);
  CHECK(a.look.begin(a.now, a.now) == a.now);  // its time is over
  CHECK(busy_look(0us).begin(a.now, a.now + 10s) == a.now);
}

TEST_CASE("looking for an answer: who looks in vain again and again looks less often", "[unit][engine]") {
  looking a;
  REQUIRE(a.calls_to_a_look(150us) == 4);
  for (int const pause : {64, 128, 256, 512, 1'024, 2'048, 4'096, 4'096}) {
    for (int i = 0; i < 3; ++i) REQUIRE(a.call(150us));
    CHECK(a.calls_to_a_look(150us) == pause);
  }
}

TEST_CASE("looking for an answer: whose CPU was taken meanwhile sleeps for thousands of calls", "[unit][engine]") {
  looking a;
  REQUIRE(a.calls_to_a_look() == 4);
  for (int const pause : {4'096, 8'192, 16'384, 32'768, 65'536, 65'536}) {
    a.preempted();
    CHECK(a.calls_to_a_look() == pause);
  }
  for (int i = 0; i < 2'048; ++i) REQUIRE(a.call(20us));
  a.preempted();
  CHECK(a.calls_to_a_look() == 4'096);
}

TEST_CASE("the end of a client: begun, ripe, finished, each once, and who waits is told", "[unit][engine]") {
  client_end end;
  bool quiet = true;
  int asked = 0;
  auto const ripe = [&] {
    return end.ripe([&] {
      ++asked;
      return quiet;
    });
  };
  CHECK_FALSE(ripe());
  CHECK(asked == 0);
  CHECK(end.begin());
  CHECK_FALSE(end.begin());
  CHECK(end.begun());
  quiet = false;
  CHECK_FALSE(ripe());
  CHECK_FALSE(end.finishing());
  quiet = true;
  CHECK(ripe());
  CHECK_FALSE(ripe());
  CHECK(end.finishing());
  int told = 0;
  client_end::waiter waits = [&] { ++told; };
  CHECK(end.wait(waits));
  std::vector<client_end::waiter> waiters;
  CHECK_FALSE(end.over());
  CHECK(end.finish(waiters));
  CHECK(end.over());
  for (auto const& one : waiters) one();
  CHECK(told == 1);
  CHECK_FALSE(end.finish(waiters));
  waits = [&] { ++told; };
  CHECK_FALSE(end.wait(waits));
  waits();  // it is still the caller's
  CHECK(told == 2);
}

TEST_CASE("the end of a client: without an executor nothing more is said", "[unit][engine]") {
  client_end end;
  end.cut_short();
  CHECK(end.begun());
  CHECK(end.finishing());
  CHECK_FALSE(end.ripe([] { return true; }));
  CHECK_FALSE(end.over());
}

TEST_CASE("attachments: one for each identity, as long as it lives", "[unit][engine]") {
  struct noted final : attachment {
    void closing() noexcept override {}
    void thread_ended() noexcept override {}
    void closed() noexcept override {}
  };
  attachments all;
  int made = 0;
  auto const make = [&] {
    ++made;
    return std::make_shared<noted>();
  };
  auto first = all.find("a", make);
  CHECK(all.find("a", make) == first);
  CHECK(all.find("b", make) != first);
  CHECK(made == 2);
  CHECK(all.alive().size() == 1);  // nobody has kept the other
  first.reset();
  for (int i = 0; i < 200; ++i) all.find(std::to_string(i), make);
  CHECK(all.alive().empty());
  CHECK(all.find("a", make));
  CHECK(made == 203);
}

}  // namespace engine_parts
