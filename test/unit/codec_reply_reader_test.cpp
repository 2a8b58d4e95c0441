#include <codec/reply_reader.hpp>
#include <support/catch.hpp>
#include <support/unit/show_reply.hpp>

#include <limits>
#include <set>
#include <string>
#include <utility>

using namespace latchkey::detail;
using latchkey::test::read_all;
using latchkey::test::show;

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
