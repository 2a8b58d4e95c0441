#pragma once

#include <codec/reply.hpp>
#include <wire/kinds.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

namespace latchkey::fuzz {

// The bytes that the fuzzer chose, taken one after another as decisions. Behind their end every decision is the first.
class input {
 public:
  input(std::uint8_t const* bytes, std::size_t size) : rest_(reinterpret_cast<char const*>(bytes), size) {}

  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  unsigned char byte() {
    if (rest_.empty()) return 0;
    auto const taken = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return taken;
  }
  // In [0, below). Digits choose themselves, so that seeds can be written by hand.
  std::size_t pick(std::size_t below) {
    unsigned const taken = byte();
    return (taken >= '0' && taken <= '9' ? taken - '0' : taken) % below;
  }
  bool flip() { return pick(2) == 1; }
  std::string_view text(std::size_t most) {
    auto const taken = rest_.substr(0, pick(most + 1));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  template <class T, std::size_t n>
  T const& any(T const (&of)[n]) {
    return of[pick(n)];
  }

 private:
  std::string_view rest_;
};

// A broken rule ends the program, as a memory error does; the fuzzer then keeps the bytes.
inline void must(bool kept, char const* rule) {
  if (kept) return;
  std::fprintf(stderr, "BROKEN RULE: %s\n", rule);
  std::abort();
}

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

// A kind, and how many commands of its own it has.
struct known_kind {
  detail::kind const* which;
  unsigned char commands;
};

inline std::array<known_kind, 11> const& every_kind() {
  using namespace detail;
  static std::array<known_kind, 11> const all{{{&reentrant_kind(), 0},
                                               {&fair_kind(), 0},
                                               {&read_write_kind(), 0},
                                               {&semaphore_kind(), 4},
                                               {&permit_semaphore_kind(), 7},
                                               {&count_down_latch_kind(), 2},
                                               {&fenced_kind(), 0},
                                               {&plain_kind(), 0},
                                               {&spin_kind(), 0},
                                               {&non_reentrant_kind(), 0},
                                               {&fenced_kind(true), 0}}};
  return all;
}

// Does the kind ever ask for that?
inline bool has(known_kind const& one, detail::ask what) {
  if (what == detail::ask::none) return false;
  if (what == detail::ask::command) return one.commands > 0;
  try {
    one.which->script_for(what);
    return true;
  } catch (std::logic_error const&) {
    return false;
  }
}

}  // namespace latchkey::fuzz
