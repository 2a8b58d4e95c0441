#include <codec/command_writer.hpp>
#include <codec/reply.hpp>
#include <support/catch.hpp>
#include <support/unit/wire_words.hpp>

#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace latchkey::detail;
using latchkey::test::show;

namespace {

// Feeds a new reader piece by piece and shows what comes out, each reply with a semicolon behind it; `!` at the end
// if the bytes are malformed.
std::string read_all(std::string_view bytes, std::size_t piece = std::string_view::npos) {
  reply_reader reader;
  reply got;
  std::string made;
  while (!bytes.empty()) {
    auto const now = bytes.substr(0, piece);
    bytes.remove_prefix(now.size());
    reader.feed(now);
    auto result = reader.next(got);
    for (; result == reply_reader::result::reply; result = reader.next(got)) made += show(got) + ";";
    if (result == reply_reader::result::malformed) return made + "!";
  }
  return made;
}

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

TEST_CASE("each type of RESP2 is read", "[unit][codec]") {
  auto const [text, shown] = GENERATE(table<std::string, std::string>({
      {"+OK\r\n", "+OK"},
      {"+\r\n", "+"},
      {"-ERR no\r\n", "-ERR no"},
      {":0\r\n", ":0"},
      {":-42\r\n", ":-42"},
      {":9223372036854775807\r\n", ":9223372036854775807"},
      {":-9223372036854775808\r\n", ":-9223372036854775808"},
      {"$5\r\nhello\r\n", "$hello"},
      {"$0\r\n\r\n", "$"},
      {"$4\r\na\r\nb\r\n", "$a\r\nb"},
      {"$-1\r\n", "nil"},
      {"*-1\r\n", "nil"},
      {"*0\r\n", "[]"},
      {"*1\r\n*0\r\n", "[[]]"},
      {"*3\r\n:1\r\n$-1\r\n+x\r\n", "[:1 nil +x]"},
      {"*2\r\n*2\r\n:-5\r\n:-3\r\n*2\r\n:-8\r\n$3\r\nOOM\r\n", "[[:-5 :-3] [:-8 $OOM]]"},
      {"*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$1\r\n0\r\n", "[$message $ch $0]"},
      {"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", "[[[[[[[[:1]]]]]]]]"},
  }));
  INFO(text);
  CHECK(read_all(text) == shown + ";");
}

TEST_CASE("a bulk string may hold any bytes", "[unit][codec]") {
  std::string bytes;
  for (int c = 0; c < 256; ++c) bytes += static_cast<char>(c);
  reply_reader reader;
  reader.feed("$256\r\n" + bytes + "\r\n");
  reply got;
  REQUIRE(reader.next(got) == reply_reader::result::reply);
  CHECK(got.kind == reply::type::string);
  CHECK(got.text == bytes);
}

TEST_CASE("replies come in order, however their bytes are cut", "[unit][codec]") {
  std::string const text =
      "+OK\r\n*2\r\n:1\r\n*2\r\n$3\r\na\r\n\r\n$-1\r\n-NOSCRIPT No\r\n:7\r\n*-1\r\n$0\r\n\r\n*1\r\n:-3\r\n";
  std::string const shown = "+OK;[:1 [$a\r\n nil]];-NOSCRIPT No;:7;nil;$;[:-3];";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    INFO("in pieces of " << step);
    CHECK(read_all(text, step) == shown);
  }
}

TEST_CASE("an unfinished reply waits for its rest at every byte", "[unit][codec]") {
  std::string const text = "*2\r\n$3\r\nabc\r\n:-12\r\n";
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    reply_reader reader;
    reply got;
    reader.feed(text.substr(0, cut));
    CHECK(reader.next(got) == reply_reader::result::more);
    CHECK(reader.next(got) == reply_reader::result::more);
    reader.feed(text.substr(cut));
    REQUIRE(reader.next(got) == reply_reader::result::reply);
    CHECK(show(got) == "[$abc :-12]");
    CHECK(reader.next(got) == reply_reader::result::more);
    CHECK(reader.problem().empty());
  }
}

TEST_CASE("nothing of an earlier reply shows in a later one", "[unit][codec]") {
  reply_reader reader;
  reply got;
  reader.feed("*2\r\n$3\r\nabc\r\n:5\r\n:6\r\n+x\r\n*1\r\n$-1\r\n$-1\r\n");
  for (std::string const shown : {"[$abc :5]", ":6", "+x", "[nil]", "nil"}) {
    REQUIRE(reader.next(got) == reply_reader::result::reply);
    CHECK(show(got) == shown);
    CHECK((got.kind == reply::type::array || got.elements.empty()));
    CHECK((got.is_integer() || got.integer == 0));
    CHECK((got.kind == reply::type::status || got.text.empty()));
  }
}

TEST_CASE("steady reading uses the same storage again", "[unit][codec]") {
  reply_reader reader;
  reply got;
  std::set<void const*> places;
  for (int i = 0; i < 100; ++i) {
    reader.feed("*2\r\n:1\r\n:2\r\n");
    REQUIRE(reader.next(got) == reply_reader::result::reply);
    places.insert(got.elements.data());
  }
  // The caller's and the reader's own.
  CHECK(places.size() == 2);
}

TEST_CASE("a reader can be moved in the middle of a reply", "[unit][codec]") {
  reply_reader first;
  reply got;
  first.feed("*2\r\n:1\r\n");
  CHECK(first.next(got) == reply_reader::result::more);
  reply_reader second = std::move(first);
  second.feed(":2\r\n+OK\r\n");
  CHECK(second.next(got) == reply_reader::result::reply);
  CHECK(show(got) == "[:1 :2]");
  first = std::move(second);
  CHECK(first.next(got) == reply_reader::result::reply);
  CHECK(show(got) == "+OK");
}

namespace {

std::string repeated(std::string const& part, std::size_t times) {
  std::string made;
  for (std::size_t i = 0; i < times; ++i) made += part;
  return made;
}

// Each of these can be told as it stands, without waiting for more.
std::vector<std::string> const malformed = {
    // types that are none
    "@foo\r\n",
    "HTTP/1.1 400 Bad Request\r\n",
    "\r\n",
    std::string("\0\r\n", 3),
    "\x16\x03\x01\x02",
    "OK\r\n",
    // numbers
    ":\r\n",
    ":-\r\n",
    ":+1\r\n",
    ":1.5\r\n",
    ":12x\r\n",
    ": 1\r\n",
    ":1 \r\n",
    ":01\r\n",
    ":-0\r\n",
    ":0x10\r\n",
    ":9223372036854775808\r\n",
    ":-9223372036854775809\r\n",
    ":99999999999999999999999\r\n",
    ":999999999999999999999999999999999999999999",
    // lengths of bulk strings
    "$\r\n",
    "$abc\r\n",
    "$-2\r\n",
    "$-9223372036854775808\r\n",
    "$+3\r\nabc\r\n",
    "$03\r\nabc\r\n",
    "$1048577\r\n",
    "$536870912\r\n",
    "$2147483648\r\n",
    "$4294967296\r\n",
    "$9223372036854775807\r\n",
    "$18446744073709551615\r\n",
    "$1000000000000000000000000000000000",
    // bulk strings that do not end where they say
    "$3\r\nabcd\r\n",
    "$3\r\nabc\rx",
    "$3\r\nabcxx",
    "$0\r\nxx",
    "$2\r\nab\n\r",
    // lengths of arrays
    "*\r\n",
    "*x\r\n",
    "*-2\r\n",
    "*-9223372036854775808\r\n",
    "*16385\r\n",
    "*2147483647\r\n",
    "*2147483648\r\n",
    "*4294967296\r\n",
    "*9223372036854775807\r\n",
    "*1152921504606846976\r\n",
    "*18446744073709551615\r\n",
    "*1000000000000000000000000000000000",
    // arrays that together announce too much
    "*2\r\n*16383\r\n",
    "*16384\r\n*1\r\n",
    // lines
    "+a\nb\r\n",
    "+a\rb\r\n",
    "-ERR a\nb\r\n",
    // RESP3
    "_\r\n",
    "#t\r\n",
    "#f\r\n",
    ",1.5\r\n",
    ",inf\r\n",
    "(123\r\n",
    "=7\r\ntxt:abc\r\n",
    "~1\r\n:1\r\n",
    "%1\r\n+a\r\n:1\r\n",
    "%0\r\n",
    ">1\r\n+x\r\n",
    ">2\r\n$10\r\ninvalidate\r\n*-1\r\n",
    "|1\r\n+a\r\n:1\r\n:2\r\n",
    // the same one floor down
    "*1\r\n@\r\n",
    "*2\r\n:1\r\n:x\r\n",
    "*1\r\n$-2\r\n",
    "*1\r\n*-2\r\n",
    "*2\r\n:1\r\n_\r\n",
    "*1\r\n#t\r\n",
};

}  // namespace

TEST_CASE("G75: malformed bytes are told as soon as they are there", "[unit][codec]") {
  for (auto const& text : malformed) {
    INFO("bytes: " << Catch::Detail::stringify(text));
    CHECK(read_all(text) == "!");
    CHECK(read_all(text, 1) == "!");
    CHECK(read_all("+OK\r\n" + text) == "+OK;!");
  }
}

TEST_CASE("G75: a malformed stream stays malformed and says why", "[unit][codec]") {
  for (auto const& text : malformed) {
    INFO("bytes: " << Catch::Detail::stringify(text));
    reply_reader reader;
    reply got;
    reader.feed(text);
    CHECK(reader.next(got) == reply_reader::result::malformed);
    auto const problem = reader.problem();
    CHECK(problem.size() > 3);
    reader.feed("+OK\r\n");
    CHECK(reader.next(got) == reply_reader::result::malformed);
    CHECK(reader.problem() == problem);
  }
}

TEST_CASE("G75: arrays in arrays are read to a depth of eight", "[unit][codec]") {
  CHECK(read_all(repeated("*1\r\n", 8) + ":1\r\n").back() == ';');
  CHECK(read_all(repeated("*1\r\n", 9)) == "!");
  CHECK(read_all(repeated("*1\r\n", 1'000'000)) == "!");
  CHECK(read_all(repeated("*2\r\n:1\r\n", 1'000'000)) == "!");
  CHECK(read_all(repeated("*1\r\n", 8) + "*0\r\n") == "!");
}

TEST_CASE("G75: a line that never ends is given up", "[unit][codec]") {
  for (char const type : {'+', '-'}) {
    CHECK(read_all(type + std::string(1 << 16, 'x')) == "");
    CHECK(read_all(type + std::string((1 << 16) + 1, 'x')) == "!");
  }
  for (char const type : {':', '$', '*'}) {
    CHECK(read_all(type + std::string(20, '1')) == "");
    CHECK(read_all(type + std::string(33, '1')) == "!");
  }
}

TEST_CASE("G76: a bulk string is read up to the limit and refused by its length above", "[unit][codec]") {
  auto const most = reply_reader::max_bytes - 64;
  auto const text = "$" + std::to_string(most) + "\r\n" + std::string(most, 'x') + "\r\n";
  CHECK(read_all(text, 4096).size() == most + 2);
  // Refused before a byte of it is there.
  CHECK(read_all("$" + std::to_string(reply_reader::max_bytes + 1) + "\r\n") == "!");
}

TEST_CASE("G76: an array is read up to the limit and refused by its length above", "[unit][codec]") {
  auto const most = reply_reader::max_elements;
  auto const text = "*" + std::to_string(most) + "\r\n" + repeated(":1\r\n", most);
  CHECK(read_all(text, 1000).ends_with(":1];"));
  CHECK(read_all("*" + std::to_string(most + 1) + "\r\n") == "!");
}

TEST_CASE("G76: a reply of many parts is bounded as a whole", "[unit][codec]") {
  std::string const part = "$65536\r\n" + std::string(65'536, 'x') + "\r\n";
  CHECK(read_all("*15\r\n" + repeated(part, 15)).back() == ';');
  CHECK(read_all("*17\r\n" + repeated(part, 17)) == "!");
  CHECK(read_all("*17\r\n" + repeated(part, 16), 8192) == "!");
}

TEST_CASE("G76: many small replies in one piece are not one large reply", "[unit][codec]") {
  std::size_t const count = 3 * reply_reader::max_bytes / 5;
  auto const read = read_all(repeated("+OK\r\n", count));
  CHECK(read.size() == count * 4);
  CHECK(read.back() == ';');
  // And the limits start anew with each of them.
  std::string const large = "$1000000\r\n" + std::string(1'000'000, 'x') + "\r\n";
  CHECK(read_all(repeated(large, 5), 100'000).size() == 5 * 1'000'002);
  std::string const wide = "*10000\r\n" + repeated(":1\r\n", 10'000);
  CHECK(read_all(repeated(wide, 3)).back() == ';');
}

TEST_CASE("G75: changed bytes are read the same whole and in pieces", "[unit][codec]") {
  std::vector<std::string> seeds = malformed;
  seeds.insert(seeds.end(), {"*2\r\n*2\r\n:-5\r\n:-3\r\n*2\r\n:-8\r\n$3\r\nOOM\r\n", "+OK\r\n:1\r\n$5\r\nhello\r\n",
                             "*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$1\r\n0\r\n", "-ERR no\r\n*-1\r\n$-1\r\n*0\r\n"});
  std::minstd_rand random(7);
  auto const alphabet = std::string("+-:$*_#,(=~%>|0123456789\r\nx") + '\0';
  for (int round = 0; round < 20'000; ++round) {
    auto text = seeds[random() % seeds.size()] + seeds[random() % seeds.size()];
    for (auto changes = random() % 4; changes > 0 && !text.empty(); --changes) {
      auto const at = random() % text.size();
      if (random() % 3 == 0)
        text.erase(at, 1 + random() % 3);
      else if (random() % 2 == 0)
        text.insert(at, 1, alphabet[random() % alphabet.size()]);
      else
        text[at] = alphabet[random() % alphabet.size()];
    }
    auto const whole = read_all(text);
    if (whole != read_all(text, 1) || whole != read_all(text, 1 + random() % 7)) {
      INFO("bytes: " << Catch::Detail::stringify(text));
      FAIL("read differently in pieces");
    }
  }
}
