#include <codec/command_writer.hpp>
#include <support/catch.hpp>

#include <cstdint>
#include <limits>
#include <string>

using namespace latchkey::detail;

namespace {

std::string written(words const& command) {
  std::string out;
  append_command(out, command);
  return out;
}

}  // namespace

TEST_CASE("a command is an array of bulk strings", "[unit][codec]") {
  words command;
  command.add("PTTL");
  command.add("orders");
  CHECK(written(command) == "*2\r\n$4\r\nPTTL\r\n$6\r\norders\r\n");
}

TEST_CASE("A4: words pass through byte for byte", "[unit][codec]") {
  for (std::string const& word :
       {std::string(), std::string("\0", 1), std::string("a\r\nb"), std::string("a b\0c", 5), std::string("\xff\xfe"),
        std::string("gr\xc3\xbc\xc3\x9f"), std::string(70'000, 'x')}) {
    words command;
    command.add(word);
    CHECK(written(command) == "*1\r\n$" + std::to_string(word.size()) + "\r\n" + word + "\r\n");
  }
}

TEST_CASE("numbers are written in plain decimals", "[unit][codec]") {
  words command;
  command.add(std::int64_t{0});
  command.add(std::int64_t{-1});
  command.add(std::int64_t{30'000});
  command.add(std::numeric_limits<std::int64_t>::max());
  command.add(std::numeric_limits<std::int64_t>::min());
  REQUIRE(command.size() == 5);
  CHECK(command[0] == "0");
  CHECK(command[1] == "-1");
  CHECK(command[2] == "30000");
  CHECK(command[3] == "9223372036854775807");
  CHECK(command[4] == "-9223372036854775808");
}

TEST_CASE("a command is appended behind what is there", "[unit][codec]") {
  words command;
  command.add("PING");
  std::string out = "+before\r\n";
  append_command(out, command);
  append_command(out, command);
  CHECK(out == "+before\r\n*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n");
}

TEST_CASE("cleared words leave nothing of the command before", "[unit][codec]") {
  words command;
  command.add("a long word that does not fit the string itself");
  command.add("another");
  auto const* place = command[0].data();
  command.clear();
  CHECK(command.size() == 0);
  CHECK(command.view().empty());
  command.add("x");
  CHECK(command.size() == 1);
  CHECK(command[0] == "x");
  CHECK(command[0].data() == place);
  CHECK(written(command) == "*1\r\n$1\r\nx\r\n");
  command[0] = "changed";
  CHECK(written(command) == "*1\r\n$7\r\nchanged\r\n");
}
