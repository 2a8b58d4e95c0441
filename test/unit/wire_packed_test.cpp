#include <support/catch.hpp>
#include <wire/packed.hpp>

#include <string>
#include <vector>

using namespace latchkey::detail;

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
