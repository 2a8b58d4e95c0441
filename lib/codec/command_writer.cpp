#include <codec/command_writer.hpp>

#include <algorithm>
#include <array>
#include <charconv>
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

constexpr std::size_t most_of_length = std::tuple_size_v<number_room> + 3;  // with its type and the end of the line

char* put_end(char* at) { return std::ranges::copy(std::string_view("\r\n"), at).out; }

char* put_length(char* at, char type, std::size_t length) {
  *at++ = type;
  return put_end(std::to_chars(at, at + std::tuple_size_v<number_room>, length).ptr);
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
  std::size_t room = most_of_length;
  for (auto const& word : command.view()) room += most_of_length + word.size() + 2;
  std::size_t const begin = out.size();
  out.resize(begin + room);
  char* at = put_length(out.data() + begin, '*', command.size());
  for (auto const& word : command.view()) {
    at = put_length(at, '$', word.size());
    at = put_end(std::ranges::copy(word, at).out);
  }
  out.resize(static_cast<std::size_t>(at - out.data()));
}

}  // namespace latchkey::detail
