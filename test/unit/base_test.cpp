#include <base/instant.hpp>
#include <base/server_words.hpp>
#include <latchkey/error.hpp>
#include <latchkey/event.hpp>
#include <latchkey/owner.hpp>
#include <latchkey/timespan.hpp>
#include <support/catch.hpp>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <type_traits>

namespace base {

using latchkey::errc;
using latchkey::error_code;
using latchkey::lock_error;
using latchkey::owner;
using latchkey::timespan;
using namespace latchkey::detail;
using namespace std::chrono_literals;

namespace {

constexpr int first = static_cast<int>(errc::not_owner);
constexpr int last = static_cast<int>(errc::no_master);

template <class Length>
constexpr milliseconds ms(Length length) {
  return timespan(length);
}

using thirds = std::chrono::duration<std::int64_t, std::ratio<1, 3>>;
using tiny = std::chrono::duration<std::int64_t, std::atto>;
using fraction = std::chrono::duration<double>;
using unsigned_seconds = std::chrono::duration<std::uint64_t>;
constexpr auto most = std::numeric_limits<std::int64_t>::max();
constexpr auto least = std::numeric_limits<std::int64_t>::min();

static_assert(std::is_trivially_copyable_v<timespan>);
static_assert(!std::is_constructible_v<timespan, int>);
static_assert(std::is_convertible_v<std::chrono::hours, timespan> && std::is_convertible_v<timespan, milliseconds>);
static_assert(timespan() == 0ms && timespan(1s) == 1000ms && timespan(1s) > 999ms && 800us == timespan(1ms));

}  // namespace

TEST_CASE("every error has a message of its own in whole words", "[unit][base]") {
  std::set<std::string> seen;
  for (int value = first; value <= last; ++value) {
    error_code const code = static_cast<errc>(value);
    INFO(value << ": " << code.message());
    CHECK(code.message() != "unknown error");
    CHECK(code.message().find(' ') != std::string::npos);
    CHECK(seen.insert(code.message()).second);
    char buffer[8];
    CHECK(code.category().message(value, buffer, sizeof buffer) == code.message());
  }
  CHECK(error_code(last + 1, latchkey::error_category()).message() == "unknown error");
  CHECK(error_code(0, latchkey::error_category()).message() == "unknown error");
}

TEST_CASE("the category is called latchkey and there is one of it", "[unit][base]") {
  CHECK(std::string(latchkey::error_category().name()) == "latchkey");
  CHECK(error_code(errc::closed).category() == latchkey::error_category());
  CHECK(error_code(errc::closed) == errc::closed);
  CHECK(error_code(errc::closed) != errc::timeout);
}

TEST_CASE("transient errors are those that a later try may not meet", "[unit][base]") {
  std::set<errc> const transient = {errc::timeout,   errc::connection_lost, errc::connect_failed,
                                    errc::read_only, errc::not_synced,      errc::no_master};
  for (int value = first; value <= last; ++value) {
    INFO(error_code(static_cast<errc>(value)).message());
    CHECK(latchkey::is_transient(static_cast<errc>(value)) == transient.contains(static_cast<errc>(value)));
  }
  CHECK_FALSE(latchkey::is_transient({}));
  CHECK_FALSE(latchkey::is_transient(error_code(static_cast<int>(errc::timeout), boost::system::system_category())));
}

TEST_CASE("a hold may be left behind by what ran unseen, and by nothing else", "[unit][base]") {
  std::set<errc> const unseen = {errc::timeout, errc::connection_lost, errc::closed, errc::not_synced};
  for (int value = first; value <= last; ++value) {
    INFO(error_code(static_cast<errc>(value)).message());
    CHECK(latchkey::may_still_be_held(static_cast<errc>(value)) == unseen.contains(static_cast<errc>(value)));
  }
  CHECK_FALSE(latchkey::may_still_be_held({}));
}

TEST_CASE("a cancelled operation may have left a hold behind", "[unit][base]") {
  // What asio::error::operation_aborted is.
  CHECK(latchkey::may_still_be_held(error_code(ECANCELED, boost::system::system_category())));
  CHECK(latchkey::may_still_be_held(error_code(ECANCELED, boost::system::generic_category())));
  CHECK_FALSE(latchkey::may_still_be_held(error_code(ECONNRESET, boost::system::system_category())));
}

TEST_CASE("an exception shows the message of its code and the words of the server", "[unit][base]") {
  lock_error const with(errc::server_error, "OOM command not allowed");
  CHECK(std::string(with.what()).find(error_code(errc::server_error).message()) != std::string::npos);
  CHECK(std::string(with.what()).find("OOM command not allowed") != std::string::npos);
  CHECK(with.code() == errc::server_error);
  CHECK(with.server_text() == "OOM command not allowed");

  lock_error const without(errc::not_owner);
  CHECK(std::string(without.what()).starts_with(error_code(errc::not_owner).message()));
  CHECK(without.server_text().empty());
}

TEST_CASE("a server that is loading, busy or full makes an error transient", "[unit][base]") {
  for (std::string const text :
       {"LOADING Redis is loading the dataset in memory", "BUSY Redis is busy running a script.", "OOM", "MISCONF x",
        "NOREPLICAS Not enough good replicas to write.", "TRYAGAIN x", "CLUSTERDOWN The cluster is down",
        "MASTERDOWN x", "ERR max number of clients reached", "-OOM command not allowed",
        "@user_script: 1: -OOM command not allowed",
        "ERR Error running script (call to f_0123): @user_script:1: @user_script: 1: -OOM command not allowed"}) {
    INFO(text);
    CHECK(lock_error(errc::server_error, text).transient());
    CHECK_FALSE(lock_error(errc::bad_uri, text).transient());
  }
  for (std::string const text : {"", "ERR syntax error", "BUSYGROUP x", "NOPERM x", "the server is LOADING", "oom"}) {
    INFO(text);
    CHECK_FALSE(lock_error(errc::server_error, text).transient());
  }
  CHECK(lock_error(errc::timeout).transient());
}

TEST_CASE("the code of an error reply is its first word, wherever the server put it", "[unit][base]") {
  using latchkey::detail::first_word;
  CHECK(first_word("READONLY You can't write") == "READONLY");
  CHECK(first_word("-READONLY You can't write") == "READONLY");
  CHECK(first_word("@user_script: 12: -READONLY You can't write\r\n") == "READONLY");
  CHECK(first_word("@user_script:12: READONLY") == "READONLY");
  CHECK(first_word("OOM\r\n") == "OOM");
  CHECK(first_word("") == "");
  CHECK(first_word("@user_script:") == "");
  CHECK(first_word("@user_script") == "@user_script");
  CHECK(first_word("ERR Error running script") == "ERR");
}

TEST_CASE("every event has a name of its own", "[unit][base]") {
  std::set<std::string_view> seen;
  for (int value = 0; value <= static_cast<int>(latchkey::event_type::warning); ++value) {
    auto const name = latchkey::to_string(static_cast<latchkey::event_type>(value));
    CHECK(name != "unknown");
    CHECK(seen.insert(name).second);
  }
  CHECK(latchkey::to_string(latchkey::event_type::max_hold_reached) == "max_hold_reached");
  CHECK(latchkey::to_string(static_cast<latchkey::event_type>(1'000)) == "unknown");
}

TEST_CASE("A10: a time that does not fit the clock is never", "[unit][base]") {
  instant const start(5s);
  CHECK(after(start, milliseconds::max()) == never);
  CHECK(after(start, nanoseconds::max()) == never);
  CHECK(after(start, nanoseconds::max() - 5s) == never);
  CHECK(after(start, nanoseconds::max() - 6s) < never);
  CHECK(after(never, 1ms) == never);
  CHECK(after(start, 10ms) == start + 10ms);
  CHECK(after(start, -10ms) == start - 10ms);
  CHECK(after(start, milliseconds::min()) < start);
}

TEST_CASE("what is left is rounded up and never negative", "[unit][base]") {
  instant const now(5s);
  CHECK(left(now, now) == 0ms);
  CHECK(left(now, now - 1ns) == 0ms);
  CHECK(left(now, now + 1ns) == 1ms);
  CHECK(left(now, now + 2ms) == 2ms);
  CHECK(left(now, never) == milliseconds::max());
}

static_assert(std::is_trivially_copyable_v<owner>);
static_assert(!std::is_default_constructible_v<owner>);

TEST_CASE("an owner shows as its number, which is never zero", "[unit][base]") {
  auto const who = owner::make();
  auto const number = latchkey::detail::owner_access::number(who);
  CHECK(number > 0);
  CHECK(to_string(who) == std::to_string(number));
  CHECK(latchkey::detail::owner_access::from(number) == who);
  CHECK(owner::make() > who);
}

TEST_CASE("a timespan is rounded up to a millisecond", "[unit][base]") {
  CHECK(ms(0us) == 0ms);
  CHECK(ms(1ns) == 1ms);
  CHECK(ms(800us) == 1ms);
  CHECK(ms(1000us) == 1ms);
  CHECK(ms(1001us) == 2ms);
  CHECK(ms(1.5s) == 1500ms);
  CHECK(ms(fraction(1.1)) == 1100ms);
  CHECK(ms(fraction(1.1001)) == 1101ms);
  CHECK(ms(std::chrono::duration<float>(0.25F)) == 250ms);
  CHECK(ms(3min) == 180'000ms);
  CHECK(ms(thirds(1)) == 334ms);
  CHECK(ms(thirds(2)) == 667ms);
  CHECK(ms(thirds(3)) == 1000ms);
  CHECK(ms(tiny(1)) == 1ms);
}

TEST_CASE("a negative timespan is rounded up, too", "[unit][base]") {
  CHECK(ms(-1us) == 0ms);
  CHECK(ms(-1500us) == -1ms);
  CHECK(ms(-1.5s) == -1500ms);
  CHECK(ms(fraction(-0.0001)) == 0ms);
  CHECK(ms(thirds(-1)) == -333ms);
}

TEST_CASE("a timespan saturates", "[unit][base]") {
  CHECK(ms(milliseconds::max()) == milliseconds::max());
  CHECK(ms(milliseconds::min()) == milliseconds::min());
  CHECK(ms(std::chrono::hours::max()) == milliseconds::max());
  CHECK(ms(std::chrono::duration<std::int64_t>(most)) == milliseconds::max());
  CHECK(ms(std::chrono::duration<std::int64_t>(least)) == milliseconds::min());
  CHECK(ms(std::chrono::nanoseconds::max()) == milliseconds(9'223'372'036'855));
  CHECK(ms(std::chrono::nanoseconds::min()) == milliseconds(-9'223'372'036'854));
  CHECK(ms(unsigned_seconds(std::numeric_limits<std::uint64_t>::max())) == milliseconds::max());
  CHECK(ms(std::chrono::duration<std::uint64_t, std::nano>(std::numeric_limits<std::uint64_t>::max())) >=
        milliseconds(18'446'744'073'709));
  CHECK(ms(fraction(1e300)) == milliseconds::max());
  CHECK(ms(fraction(-1e300)) == milliseconds::min());
  CHECK(ms(fraction(std::numeric_limits<double>::infinity())) == milliseconds::max());
  CHECK(ms(fraction(std::numeric_limits<double>::quiet_NaN())) == 0ms);
  CHECK(ms(std::chrono::duration<float>(std::numeric_limits<float>::max())) == milliseconds::max());
}

}  // namespace base
