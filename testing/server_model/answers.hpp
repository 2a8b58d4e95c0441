#pragma once

#include <codec/reply.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace latchkey::model {

using detail::reply;

inline reply number(std::int64_t value) {
  reply made;
  made.kind = reply::type::integer;
  made.integer = value;
  return made;
}

inline reply worded(reply::type kind, std::string text) {
  reply made;
  made.kind = kind;
  made.text = std::move(text);
  return made;
}

inline reply text(std::string value) { return worded(reply::type::string, std::move(value)); }
inline reply status(std::string value) { return worded(reply::type::status, std::move(value)); }
inline reply error(std::string value) { return worded(reply::type::error, std::move(value)); }
inline reply ok() { return status("OK"); }

inline reply array(std::vector<reply> elements = {}) {
  reply made;
  made.kind = reply::type::array;
  made.elements = std::move(elements);
  return made;
}

// Appends it as RESP.
void encode(reply const& said, std::string& out);

}  // namespace latchkey::model
