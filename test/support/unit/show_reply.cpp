#include <codec/reply.hpp>
#include <support/unit/show_reply.hpp>

namespace latchkey::test {

using detail::reply;
using detail::reply_reader;

std::string show(reply const& what) {
  switch (what.kind) {
    case reply::type::nil: return "nil";
    case reply::type::integer: return ":" + std::to_string(what.integer);
    case reply::type::string: return "$" + what.text;
    case reply::type::status: return "+" + what.text;
    case reply::type::error: return "-" + what.text;
    case reply::type::array: break;
  }
  std::string made = "[";
  for (auto const& element : what.elements) {
    if (made.size() > 1) made += ' ';
    made += show(element);
  }
  return made + "]";
}

std::string read_all(std::string_view bytes, std::size_t piece) {
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

}  // namespace latchkey::test
