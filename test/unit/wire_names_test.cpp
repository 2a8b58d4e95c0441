#include <support/catch.hpp>
#include <wire/kind.hpp>
#include <wire/packed.hpp>
#include <wire/scripts.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using namespace latchkey::detail;

TEST_CASE("a derived name stands in the slot of the lock name, by Redisson's rule", "[unit][wire]") {
  auto const [name, derived] = GENERATE(table<std::string, std::string>({
      {"test", "redisson_lock__channel:{test}"},
      {"{test}:abc", "redisson_lock__channel:{test}:abc"},
      {"a{b", "redisson_lock__channel:a{b"},
      {"a}b", "redisson_lock__channel:{a}b}"},
      {"x{}y", "redisson_lock__channel:x{}y"},
      {std::string("n\0l\r\n ", 6), std::string("redisson_lock__channel:{n\0l\r\n }", 31)},
  }));
  CHECK(prefixed("redisson_lock__channel", name) == derived);
  CHECK(reentrant_kind().channel(name, "id:1") == derived);
}

TEST_CASE("a field is the client and the owner", "[unit][wire]") {
  auto const& kind = reentrant_kind();
  CHECK(kind.field("0b1c-7", 42, 0) == "0b1c-7:42");
  CHECK(kind.field("x", std::numeric_limits<std::uint64_t>::max(), 0) == "x:18446744073709551615");
}

TEST_CASE("a script is called by the SHA-1 of its text", "[unit][wire]") {
  CHECK(script("").sha() == "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  CHECK(script("abc").sha() == "a9993e364706816aba3e25717850c26c9cd0d89d");
  CHECK(script("return 1").sha() == "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
  CHECK(script("return 1").text() == "return 1");
}

TEST_CASE("each request of the reentrant lock has one script, and the same every time", "[unit][wire]") {
  auto const& kind = reentrant_kind();
  CHECK(&kind.script_for(ask::acquire) == &reentrant_acquire());
  CHECK(&kind.script_for(ask::release) == &reentrant_release());
  CHECK(&kind.script_for(ask::hand_off) == &reentrant_hand_off());
  CHECK(&kind.script_for(ask::renew) == &reentrant_renew());
  CHECK(&kind.script_for(ask::extend) == &reentrant_extend());
  CHECK(&kind.script_for(ask::force_unlock) == &reentrant_force_unlock());
  CHECK_THROWS(kind.script_for(ask::leave));
  CHECK_THROWS(kind.script_for(ask::none));
}

TEST_CASE("scripts call nothing but by pcall, so that an item fails alone", "[unit][wire]") {
  for (auto const what : {ask::acquire, ask::release, ask::hand_off, ask::renew, ask::extend, ask::force_unlock}) {
    std::string const text(reentrant_kind().script_for(what).text());
    CHECK(text.starts_with("local call = redis.pcall\n"));
    CHECK(text.find("redis.call") == std::string::npos);
    CHECK(text.find("redis.", text.find('\n')) == std::string::npos);
  }
}

TEST_CASE("an answer is packed into one text and read from it", "[unit][wire]") {
  reply number, text, none, all;
  number.kind = reply::type::integer;
  number.integer = -12;
  text.kind = reply::type::string;
  text.text = std::string("3:a\r\n\0b", 8);
  all.kind = reply::type::array;
  all.elements = {text, number, none, all, text};
  CHECK(unpacked(packed(all)) == std::vector<std::string>{text.text, "-12", text.text});
  CHECK(unpacked(packed(none)).empty());
  CHECK(unpacked("").empty());
  reply empty;
  empty.kind = reply::type::string;
  CHECK(unpacked(packed(empty)) == std::vector<std::string>{""});
}
