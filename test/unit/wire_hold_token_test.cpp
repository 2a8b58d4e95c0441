// Tokens of detached holds.
#include <support/catch.hpp>
#include <wire/hold_token.hpp>

#include <string>

using namespace latchkey::detail;

namespace {

constexpr auto uuid = "01234567-0123-0123-0123-0123456789ab";

}  // namespace

TEST_CASE("a token says what was written into it, whatever the bytes of the name", "[unit][wire]") {
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every += static_cast<char>(byte);
  for (auto const& name : {std::string("job"), std::string("a \"b\" \\c"), every}) {
    auto const text = write_token({name, "fenced", uuid, 18446744073709551615u, 42});
    CHECK(text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") == text.npos);
    auto const read = read_token(text);
    REQUIRE(read);
    CHECK(read->name == name);
    CHECK(read->kind == "fenced");
    CHECK(read->client == uuid);
    CHECK(read->owner == 18446744073709551615u);
    CHECK(read->fence == 42);
  }
}

TEST_CASE("a token is written as the program latchkey reads it", "[unit][wire]") {
  CHECK(write_token({"k", "lock", "id", 7, 0}) == "lk1.eyJuYW1lIjoiayIsImtpbmQiOiJsb2NrIiwib3duZXIiOiJpZDo3In0");
}

TEST_CASE("what is no token is not read", "[unit][wire]") {
  auto const good = write_token({"k", "lock", uuid, 7, 0});
  REQUIRE(read_token(good));
  for (std::size_t length = 0; length < good.size(); ++length) {
    INFO(length);
    CHECK_FALSE(read_token(good.substr(0, length)));
  }
  CHECK_FALSE(read_token(good + "A"));
  CHECK_FALSE(read_token("lk2." + good.substr(4)));
  CHECK_FALSE(read_token("lk1.e30"));  // {}
  CHECK_FALSE(read_token("lk1.W10"));  // []
  CHECK_FALSE(read_token(std::string("lk1.") + std::string(200'000, 'A')));
}

TEST_CASE("a token with numbers of others is read, one of several locks is not", "[unit][wire]") {
  // {"name":"k","kind":"lock","owner":"id:7","lease_ms":30000}
  CHECK(read_token("lk1.eyJuYW1lIjoiayIsImtpbmQiOiJsb2NrIiwib3duZXIiOiJpZDo3IiwibGVhc2VfbXMiOjMwMDAwfQ"));
  // {"name":"k","kind":"lock","owner":"id:7","also":["b"]}
  CHECK_FALSE(read_token("lk1.eyJuYW1lIjoiayIsImtpbmQiOiJsb2NrIiwib3duZXIiOiJpZDo3IiwiYWxzbyI6WyJiIl19"));
}
