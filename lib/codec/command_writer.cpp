#include <array>
#include <charconv>
#include <codec/command_writer.hpp>
#include <limits>

namespace latchkey::detail {
namespace {

// "-9223372036854775808"
using number_room = std::array<char, std::numeric_limits<std::int64_t>::digits10 + 2>;

template <class Number>
std::string_view written(number_room& room, Number number) {
  char* const end = std::to_chars(room.data(), room.data() + room.size(), number).ptr;
  return {room.data(), static_cast<std::size_t>(end - room.data())};
}

void append_length(std::string& out, char type, std::size_t length) {
  number_room room;
  out += type;
  out += written(room, length);
  out += "\r\n";
}

}  // namespace

std::string& words::add_empty() {
  if (used_ == words_.size()) words_.emplace_back();
  auto& word = words_[used_++];
  word.clear();
  return word;
}

void words::add(std::int64_t number) {
  number_room room;
  add(written(room, number));
}

// hiredis formats by sprintf: that was a third of the instructions of a pair.
void append_command(std::string& out, words const& command) {
  std::size_t room = sizeof(number_room);
  for (auto const& word : command.view()) room += word.size() + sizeof(number_room);
  out.reserve(out.size() + room);
  append_length(out, '*', command.size());
  for (auto const& word : command.view()) {
    append_length(out, '$', word.size());
    out += word;
    out += "\r\n";
  }
}

}  // namespace latchkey::detail
