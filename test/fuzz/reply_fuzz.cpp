#include <codec/reply.hpp>
#include <fuzz/input.hpp>

#include <algorithm>
#include <vector>

// Bytes of a server, whole and in pieces: both ways the same replies and the same end, and what was read can be
// written and read again. The first byte says how long a piece is.

namespace latchkey::fuzz {
namespace {

using detail::reply;
using detail::reply_reader;

struct reading {
  std::vector<reply> replies;
  bool malformed = false;
};

reading read(std::string_view bytes, std::size_t piece) {
  reading made;
  reply_reader reader;
  while (!bytes.empty() && !made.malformed) {
    reader.feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (reply one;;) {
      auto const got = reader.next(one);
      made.malformed = got == reply_reader::result::malformed;
      if (got != reply_reader::result::reply) break;
      made.replies.push_back(one);
    }
  }
  if (made.malformed) {
    must(!reader.problem().empty(), "what is malformed has a reason");
    reply again;
    reader.feed("+OK\r\n");
    must(reader.next(again) == reply_reader::result::malformed, "malformed is for good");
  }
  return made;
}

// Nobody says what the server has not said.
bool said(reply const& one, std::string_view bytes) {
  using type = reply::type;
  bool const worded = one.kind == type::string || one.kind == type::status || one.kind == type::error;
  if (worded && bytes.find(one.text + "\r\n") == bytes.npos) return false;
  return std::all_of(one.elements.begin(), one.elements.end(), [&](reply const& each) { return said(each, bytes); });
}

bool same_replies(reading const& a, reading const& b) {
  if (a.malformed != b.malformed || a.replies.size() != b.replies.size()) return false;
  for (std::size_t i = 0; i < a.replies.size(); ++i)
    if (!same(a.replies[i], b.replies[i])) return false;
  return true;
}

void once(input in) {
  std::size_t const piece = 1 + in.pick(16);
  auto const bytes = in.rest();
  auto const whole = read(bytes, bytes.size());
  must(same_replies(whole, read(bytes, piece)), "pieces make no difference");
  std::string written;
  for (auto const& one : whole.replies) {
    must(said(one, bytes), "what was read stands in the bytes");
    write_reply(one, written);
  }
  auto again = read(written, written.size());
  again.malformed = whole.malformed;
  must(same_replies(whole, again), "what was read can be written and read again");
}

}  // namespace
}  // namespace latchkey::fuzz

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* bytes, std::size_t size) {
  latchkey::fuzz::once({bytes, size});
  return 0;
}
