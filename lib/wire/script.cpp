#include <boost/uuid/detail/sha1.hpp>
#include <type_traits>
#include <wire/script.hpp>

namespace latchkey::detail {
namespace {

// Boost gives the digest as five numbers up to 1.85 and as twenty bytes since.
template <class Element, std::size_t Size>
std::string to_hex(Element const (&digest)[Size]) {
  constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(Size * sizeof(Element) * 2);
  for (auto const element : digest)
    for (int bit = static_cast<int>(sizeof(Element)) * 8 - 4; bit >= 0; bit -= 4) hex += digits[(element >> bit) & 0xF];
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

script const& no_keys_script() {
  static script const text("return 1");
  return text;
}

}  // namespace latchkey::detail
