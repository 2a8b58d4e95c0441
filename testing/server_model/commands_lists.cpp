#include <server_model/commands.hpp>

#include <algorithm>

namespace latchkey::model {

namespace {

using list = keyspace::list_value;

template <class Answer>
reply with_list(surroundings& at, words_view words, Answer answer) {
  bool refused = false;
  list* const found = look_up<list>(at, words[1], refused);
  return refused ? wrong_type() : answer(found);
}

reply push(surroundings& at, words_view words, bool left) {
  return with_list(at, words, [&](list* found) {
    list& one = found ? *found : std::get<list>(at.data.make(words[1], list{}).holds);
    for (auto const& item : words.subspan(2)) {
      if (left)
        one.push_front(item);
      else
        one.push_back(item);
    }
    return number(static_cast<std::int64_t>(one.size()));
  });
}

reply pop(surroundings& at, words_view words, bool left) {
  return with_list(at, words, [&](list* found) {
    if (!found) return reply{};
    reply made = text(left ? found->front() : found->back());
    if (left)
      found->pop_front();
    else
      found->pop_back();
    if (found->empty()) at.data.remove(words[1]);
    return made;
  });
}

reply llen(surroundings& at, words_view words) {
  return with_list(at, words, [](list* found) { return number(found ? static_cast<std::int64_t>(found->size()) : 0); });
}

reply lindex(surroundings& at, words_view words) {
  return with_list(at, words, [&](list* found) {
    if (!found) return reply{};
    auto const index = integer_of(words[2]);
    if (!index) return not_an_integer();
    auto const size = static_cast<std::int64_t>(found->size());
    std::int64_t const i = *index < 0 ? *index + size : *index;
    return i < 0 || i >= size ? reply{} : text((*found)[static_cast<std::size_t>(i)]);
  });
}

reply lrange(surroundings& at, words_view words) {
  auto const from = integer_of(words[2]), to = integer_of(words[3]);
  if (!from || !to) return not_an_integer();
  return with_list(at, words, [&](list* found) {
    reply made = array();
    std::int64_t first = *from, last = *to;
    if (!found || !cut_range(first, last, found->size())) return made;
    for (auto i = first; i <= last; ++i) made.elements.push_back(text((*found)[static_cast<std::size_t>(i)]));
    return made;
  });
}

reply lpos(surroundings& at, words_view words) {
  if (words.size() > 3) return syntax_error();
  return with_list(at, words, [&](list* found) {
    if (!found) return reply{};
    auto const there = std::find(found->begin(), found->end(), words[2]);
    return there == found->end() ? reply{} : number(there - found->begin());
  });
}

reply lrem(surroundings& at, words_view words) {
  auto const count = integer_of(words[2]);
  if (!count) return not_an_integer();
  return with_list(at, words, [&](list* found) {
    if (!found) return number(0);
    std::int64_t gone = 0;
    std::int64_t const most = *count == 0 ? INT64_MAX : std::abs(*count);
    if (*count < 0) std::reverse(found->begin(), found->end());
    std::erase_if(*found, [&](auto const& item) { return item == words[3] && gone < most && ++gone > 0; });
    if (*count < 0) std::reverse(found->begin(), found->end());
    if (found->empty()) at.data.remove(words[1]);
    return number(gone);
  });
}

constexpr command list_table[] = {
    {"lpush", -3, command::grows, [](surroundings& at, words_view words) { return push(at, words, true); }},
    {"rpush", -3, command::grows, [](surroundings& at, words_view words) { return push(at, words, false); }},
    {"lpop", 2, command::writes, [](surroundings& at, words_view words) { return pop(at, words, true); }},
    {"rpop", 2, command::writes, [](surroundings& at, words_view words) { return pop(at, words, false); }},
    {"llen", 2, command::reads, llen},
    {"lindex", 3, command::reads, lindex},
    {"lrange", 4, command::reads, lrange},
    {"lpos", -3, command::reads, lpos},
    {"lrem", 4, command::writes, lrem},
};

}  // namespace

commands_view list_commands() { return list_table; }

}  // namespace latchkey::model
