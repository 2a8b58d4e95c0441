// Tokens of detached holds.
#include <latchkey/detail/hold_token.hpp>
#include <support/catch.hpp>

#include <string>
#include <vector>

using namespace latchkey::detail;

namespace {

constexpr auto shown = "01234567-0123-0123-0123-0123456789ab:18446744073709551615";

}  // namespace

TEST_CASE("a token says what was written into it, whatever the bytes of the name", "[outside][token]") {
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every += static_cast<char>(byte);
  for (auto const& name : {std::string("job"), std::string("a \"b\" \\c"), every}) {
    auto const text = write_token({{name, "b"}, "fenced", shown, 30'000, 42});
    CHECK(text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") == text.npos);
    auto const read = read_token(text);
    REQUIRE(read);
    CHECK(read->names == std::vector<std::string>{name, "b"});
    CHECK(read->kind == "fenced");
    CHECK(read->owner == shown);
    CHECK(read->lease_ms == 30'000);
    CHECK(read->fence == 42u);
  }
}

TEST_CASE("a token is JSON in the base64 of URLs", "[outside][token]") {
  CHECK(write_token({{"k"}, "lock", "id:7", 0, {}}) == "lk1.eyJuYW1lIjoiayIsImtpbmQiOiJsb2NrIiwib3duZXIiOiJpZDo3In0");
}

TEST_CASE("what is no token is not read", "[outside][token]") {
  auto const good = write_token({{"k"}, "lock", shown, 0, {}});
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

TEST_CASE("members of a token that are not known are passed over", "[outside][token]") {
  // {"name":"k","more":7,"others":["x"],"text":"y","kind":"lock","owner":"id:7"}
  auto const read = read_token(
      "lk1.eyJuYW1lIjoiayIsIm1vcmUiOjcsIm90aGVycyI6WyJ4Il0sInRleHQiOiJ5Iiwia2luZCI6ImxvY2siLCJvd25lciI6ImlkOjcifQ");
  REQUIRE(read);
  CHECK(read->names == std::vector<std::string>{"k"});
  CHECK_FALSE(read->fence);
  // {"name":"k","kind":"lock","owner":"id:7","fence":18446744073709551616}
  CHECK_FALSE(
      read_token("lk1.eyJuYW1lIjoiayIsImtpbmQiOiJsb2NrIiwib3duZXIiOiJpZDo3IiwiZmVuY2UiOjE4NDQ2NzQ0MDczNzA5NTUxNjE2fQ"));
}
