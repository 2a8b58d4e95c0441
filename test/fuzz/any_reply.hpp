#pragma once

#include <codec/reply.hpp>
#include <fuzz/input.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace latchkey::fuzz {

inline std::int64_t any_number(input& from) {
  constexpr std::int64_t known[] = {0,
                                    1,
                                    -1,
                                    -2,
                                    -3,
                                    -4,
                                    -5,
                                    -6,
                                    -7,
                                    -8,
                                    -9,
                                    -10,
                                    -11,
                                    -12,
                                    2,
                                    100,
                                    30'000,
                                    std::numeric_limits<std::int64_t>::max(),
                                    std::numeric_limits<std::int64_t>::min(),
                                    std::numeric_limits<std::int64_t>::max() - 1'000'000'000'000};
  return from.any(known);
}

inline std::string any_text(input& from) {
  constexpr std::string_view known[] = {"",
                                        "0",
                                        "1",
                                        "7",
                                        "-3",
                                        "9223372036854775807",
                                        "9223372036854775808",
                                        "OK",
                                        "ERR no\r\n",
                                        "OOM command not allowed",
                                        "READONLY You can't write",
                                        "NOSCRIPT No matching script",
                                        "LOADING",
                                        "BUSY",
                                        "WRONGTYPE Operation",
                                        "NOPERM this user has no permissions",
                                        "MASTERDOWN",
                                        "message",
                                        "subscribe",
                                        "id=7 addr=127.0.0.1:1 laddr=x",
                                        "slave"};
  std::size_t const which = from.pick(std::size(known) + 1);
  return std::string(which < std::size(known) ? known[which] : from.text(12));
}

// Any tree that the reader could have made.
inline detail::reply any_reply(input& from, int depth = 3) {
  detail::reply made;
  constexpr detail::reply::type kinds[] = {detail::reply::type::integer, detail::reply::type::array,
                                           detail::reply::type::string,  detail::reply::type::error,
                                           detail::reply::type::nil,     detail::reply::type::status};
  made.kind = from.any(kinds);
  if (made.kind == detail::reply::type::array) {
    std::size_t const size = depth > 0 ? from.pick(4) : 0;
    for (std::size_t i = 0; i < size; ++i) made.elements.push_back(any_reply(from, depth - 1));
  } else if (made.kind == detail::reply::type::integer) {
    made.integer = any_number(from);
  } else if (made.kind != detail::reply::type::nil) {
    made.text = any_text(from);
  }
  // No line has a break in it; the words of a bulk string may.
  if (made.kind == detail::reply::type::error || made.kind == detail::reply::type::status)
    while (!made.text.empty() && made.text.find_first_of("\r\n") != std::string::npos) made.text.pop_back();
  return made;
}

// As a server writes it.
inline void write_reply(detail::reply const& one, std::string& out) {
  using type = detail::reply::type;
  switch (one.kind) {
    case type::nil: out += "$-1\r\n"; return;
    case type::integer: out += ":" + std::to_string(one.integer) + "\r\n"; return;
    case type::status: out += "+" + one.text + "\r\n"; return;
    case type::error: out += "-" + one.text + "\r\n"; return;
    case type::string: out += "$" + std::to_string(one.text.size()) + "\r\n" + one.text + "\r\n"; return;
    case type::array:
      out += "*" + std::to_string(one.elements.size()) + "\r\n";
      for (auto const& each : one.elements) write_reply(each, out);
  }
}

inline bool same(detail::reply const& a, detail::reply const& b) {
  if (a.kind != b.kind || a.integer != b.integer || a.text != b.text || a.elements.size() != b.elements.size())
    return false;
  for (std::size_t i = 0; i < a.elements.size(); ++i)
    if (!same(a.elements[i], b.elements[i])) return false;
  return true;
}

}  // namespace latchkey::fuzz
