#pragma once

#include <codec/reply.hpp>
#include <server_model/answers.hpp>
#include <wire/item.hpp>
#include <wire/kind.hpp>

#include <cstdint>
#include <string>
#include <vector>

// What kinds ask and understand: words and replies, for the tests of the wire format.
namespace latchkey::test {

using list = std::vector<std::string>;
using model::array;
using model::error;
using model::status;

inline detail::reply integer(std::int64_t value) { return model::number(value); }
inline detail::reply integer(detail::verdict value) { return integer(static_cast<std::int64_t>(value)); }
inline detail::reply bulk(std::string value) { return model::text(std::move(value)); }

// A request about the lock `orders` that says everything.
inline detail::item everything(detail::ask what, std::int64_t target = 3) {
  return {.what = what,
          .name = "orders",
          .field = "id:1",
          .to_field = "id:2",
          .target = target,
          .lease = 30'000,
          .wait = 77,
          .line_time = 300'000};
}

inline list listed(detail::words const& command) { return {command.view().begin(), command.view().end()}; }

inline list keys_of(detail::kind const& which, detail::item const& one) {
  detail::words command;
  which.add_keys(one, command);
  return listed(command);
}

inline list arguments_of(detail::kind const& which, detail::item const& one) {
  detail::words command;
  which.add_arguments(one, command);
  return listed(command);
}

inline list keys_of(detail::kind const& which, detail::ask what) { return keys_of(which, everything(what)); }
inline list arguments_of(detail::kind const& which, detail::ask what) { return arguments_of(which, everything(what)); }

inline list question_of(detail::kind const& which, detail::query what,
                        detail::item const& one = everything(detail::ask::none)) {
  detail::words command;
  which.add_query(what, one, command);
  return listed(command);
}

inline detail::outcome meaning(detail::kind const& which, detail::ask what, detail::reply const& answer,
                               std::int64_t target = 1) {
  return which.read(what, everything(what, target), answer);
}

// A reply on one line: `+status`, `-error`, `:1`, `$string`, `nil`, `[:1 nil]`.
inline std::string show(detail::reply const& what) {
  using type = detail::reply::type;
  switch (what.kind) {
    case type::nil: return "nil";
    case type::integer: return ":" + std::to_string(what.integer);
    case type::string: return "$" + what.text;
    case type::status: return "+" + what.text;
    case type::error: return "-" + what.text;
    case type::array: break;
  }
  std::string made = "[";
  for (auto const& element : what.elements) {
    if (made.size() > 1) made += ' ';
    made += show(element);
  }
  return made + "]";
}

}  // namespace latchkey::test
