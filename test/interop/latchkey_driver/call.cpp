#include <interop/latchkey_driver/call.hpp>

#include <stdexcept>

namespace latchkey::test {

std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    auto const end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return parts;
}

std::string percent_encoded(std::string_view text) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::string result;
  for (char const one : text) {
    auto const c = static_cast<unsigned char>(one);
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_') {
      result += one;
    } else {
      result += {'%', digits[c >> 4U], digits[c & 15U]};
    }
  }
  return result;
}

std::string percent_decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      result += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

call_line call_line::parse(std::string_view line) {
  auto words = parts_of(line, ' ');
  if (words.size() < 5) throw std::runtime_error("a call has five words at least: " + std::string(line));
  call_line result{words[0], words[1], words[2], words[3], {}, {words.begin() + 5, words.end()}};
  for (auto const& name : parts_of(words[4], ',')) result.names.push_back(percent_decoded(name));
  return result;
}

}  // namespace latchkey::test
