#include <hiredis/hiredis.h>

#include <charconv>
#include <codec/command_writer.hpp>
#include <limits>
#include <memory>
#include <new>

namespace latchkey::detail {
namespace {

struct command_closer {
  void operator()(char* text) const { redisFreeCommand(text); }
};

// hiredis wants pointers and lengths side by side; the tables stay with the thread.
struct tables {
  std::vector<char const*> text;
  std::vector<std::size_t> length;
};

}  // namespace

std::string& words::add_empty() {
  if (used_ == words_.size()) words_.emplace_back();
  auto& word = words_[used_++];
  word.clear();
  return word;
}

void words::add(std::int64_t number) {
  char digits[std::numeric_limits<std::int64_t>::digits10 + 3];
  auto const end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  add(std::string_view(digits, static_cast<std::size_t>(end - digits)));
}

void append_command(std::string& out, words const& command) {
  thread_local tables mine;
  mine.text.clear();
  mine.length.clear();
  for (auto const& word : command.view()) {
    mine.text.push_back(word.data());
    mine.length.push_back(word.size());
  }
  char* raw = nullptr;
  // Its relative that makes an sds allocates twice.
  auto const size =
      redisFormatCommandArgv(&raw, static_cast<int>(command.size()), mine.text.data(), mine.length.data());
  if (size < 0) throw std::bad_alloc();
  std::unique_ptr<char, command_closer> const text(raw);
  out.append(text.get(), static_cast<std::size_t>(size));
}

}  // namespace latchkey::detail
