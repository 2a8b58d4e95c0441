#include <wire/lua.hpp>
#include <wire/script.hpp>

#include <boost/uuid/detail/sha1.hpp>

#include <memory>
#include <string>
#include <type_traits>

namespace latchkey::detail {

namespace {

// Boost gives the digest as five numbers up to 1.85 and as twenty bytes since.
template <class Element, std::size_t Size>
std::string to_hex(Element const (&digest)[Size]) {
  constexpr char hex_digits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(Size * sizeof(Element) * 2);
  for (auto const element : digest)
    for (int bit = static_cast<int>(sizeof(Element)) * 8 - 4; bit >= 0; bit -= 4)
      hex += hex_digits[(element >> bit) & 0xF];
  return hex;
}

}  // namespace

script::script(std::string_view text, bool publishes) : text_(text), publishes_(publishes) {
  boost::uuids::detail::sha1 hash;
  hash.process_bytes(text.data(), text.size());
  std::remove_reference_t<boost::uuids::detail::sha1::digest_type> digest;
  hash.get_digest(digest);
  sha_ = to_hex(digest);
}

constinit lazy_script const no_keys_script{{"return 1"}};

namespace {

// `, KEYS[k - 1], KEYS[k]`
std::string subscripts(char const* list, char const* end, int count) {
  std::string made;
  for (int back = count - 1; back >= 0; --back)
    made += std::string(", ") + list + "[" + end + (back > 0 ? " - " + std::to_string(back) : "") + "]";
  return made;
}

std::string text_of(per_item const& loop) {
  int const words = loop.arguments + (loop.has == per_item::channel::given);
  std::string const keys = std::to_string(loop.keys), arguments = std::to_string(words);
  std::string const all = subscripts("KEYS", "k", loop.keys) + (loop.has == per_item::channel::nil ? ", nil" : "") +
                          subscripts("ARGV", "a", words);
  return "local answer = {}\nfor i = 1, #KEYS / " + keys + " do\n  local k, a = " + keys + " * i, " + arguments +
         " * i\n  answer[i] = " + std::string(loop.function) + "(" + all.substr(2) + ")\nend\nreturn answer";
}

}  // namespace

script const& lazy_script::make() const {
  bool const whole = loop_.function.empty(), publishes = loop_.has == per_item::channel::given;
  std::string text;
  if (!whole) text.append(lua::call).append(publishes ? "local publish = ARGV[#ARGV]\n" : "");
  for (auto const fragment : fragments_) text += fragment;
  if (!whole) text += text_of(loop_);
  auto made = std::make_unique<script const>(text, publishes);
  script const* first = nullptr;
  if (made_.compare_exchange_strong(first, made.get(), std::memory_order_acq_rel)) first = made.release();
  return *first;
}

}  // namespace latchkey::detail
