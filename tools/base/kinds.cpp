#include <boost/uuid/random_generator.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <base/kinds.hpp>
#include <base/say.hpp>

namespace latchkey::tool {

distributed_lock lock_of(client const& from, std::string_view kind, std::string const& name) {
  if (kind == "fair") return from.get_fair_lock(name);
  if (kind == "fenced") return from.get_fenced_lock(name);
  if (kind == "spin") return from.get_spin_lock(name);
  if (kind == "plain") return from.get_plain_lock(name);
  if (kind == "non-reentrant") return from.get_non_reentrant_lock(name);
  if (kind == "read") return from.get_read_write_lock(name).read_lock();
  if (kind == "write") return from.get_read_write_lock(name).write_lock();
  return from.get_lock(name);
}

std::string hand_made_id() {
  auto made = to_string(boost::uuids::random_generator()());
  return made.replace(0, by_hand.size(), by_hand);
}

std::string end_of_others(std::string_view kind, std::string_view name) {
  if (kind == "semaphore") return "a permit of " + quoted(name) + ", of which none is free";
  return quoted(name) + ", which somebody else holds";
}

std::string an_answer_about(std::string_view name, std::string_view words) {
  return "an answer about " + quoted(name) + (words.empty() ? "" : ": " + std::string(words));
}

}  // namespace latchkey::tool
