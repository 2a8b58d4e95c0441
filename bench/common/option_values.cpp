#include <common/option_values.hpp>

#include <charconv>

namespace bench {

int parse_rounds(std::string const& text, int most) {
  int value = 0;
  auto const end = text.data() + text.size();
  auto const [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stopped != end || value < 1 || value > most)
    throw bad_option("--rounds takes a whole number from 1 to " + std::to_string(most) + ", not '" + text + "'");
  return value;
}

}  // namespace bench
