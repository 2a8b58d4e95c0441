#include <algorithm>
#include <fuzz/input.hpp>
#include <wire/item.hpp>
#include <wire/server_error.hpp>

// Any reply as the answer to any request of any kind. The bytes choose the kind, the request and the reply.

namespace latchkey::fuzz {
namespace {

using detail::ask;
using detail::item;
using detail::outcome;
using detail::reply;
using what = outcome::type;

bool holds_verdict(reply const& tree, detail::verdict which) {
  if (tree.is_integer() && tree.integer == static_cast<std::int64_t>(which)) return true;
  for (auto const& each : tree.elements)
    if (holds_verdict(each, which)) return true;
  return false;
}

// Also with the number of those who heard of it.
bool holds_release(reply const& tree) {
  if (tree.is_integer() && tree.integer <= static_cast<std::int64_t>(detail::verdict::released_to_none)) return true;
  if (holds_verdict(tree, detail::verdict::released)) return true;
  if (holds_verdict(tree, detail::verdict::released_unpublished)) return true;
  return std::any_of(tree.elements.begin(), tree.elements.end(), holds_release);
}

bool may_answer(ask asked, what answer) {
  if (answer == what::malformed || answer == what::refused) return true;
  switch (asked) {
    case ask::acquire:
      return answer == what::granted || answer == what::busy || answer == what::untried || answer == what::gone ||
             answer == what::unseen;
    case ask::release:
      return answer == what::released || answer == what::still_held || answer == what::absent || answer == what::unseen;
    case ask::hand_off:
    case ask::force_unlock:
    case ask::leave: return answer == what::released || answer == what::absent;
    case ask::renew:
    case ask::extend: return answer == what::extended || answer == what::absent;
    case ask::command: return answer == what::done || answer == what::unseen;
    case ask::none: break;
  }
  return false;
}

void check(detail::kind const& of, ask asked, item const& one, reply const& answer, outcome const& found) {
  must(may_answer(asked, found.what), "an answer means something that its request can hear");
  if (answer.is_error()) {
    must(found.what == what::refused || found.what == what::malformed, "an error grants and releases nothing");
    must(found.grant == what::refused || found.grant == what::malformed, "an error hands nothing off");
  }
  bool const granted = found.what == what::granted || found.grant == what::granted;
  if (granted) must(holds_verdict(answer, detail::verdict::granted), "only the word for it is a grant");
  if (found.what == what::released) must(holds_release(answer), "only the word for it is a release");
  if (found.what == what::unseen) {
    must(of.rules().remembers > 0, "only where the server remembers what ran it can say that something did not");
    must(one.repeated || asked == ask::release, "only who asks again, or gives back, hears that it was not seen");
  }
  if (found.what == what::busy || found.grant == what::busy) must(found.hint >= -1, "a hint is a time or for ever");
  if (found.grant != what::malformed)
    must(asked == ask::hand_off || found.what == what::refused, "only a hand-off grants beside a release");
}

void once(input in) {
  auto const& chosen = every_kind()[in.pick(every_kind().size())];
  constexpr ask asks[] = {ask::acquire, ask::release, ask::hand_off,     ask::renew,
                          ask::extend,  ask::command, ask::force_unlock, ask::leave};
  ask const asked = in.any(asks);
  if (!has(chosen, asked)) return;
  detail::kind const& of = *chosen.which;
  std::string const name(in.text(4)), field = of.field("00000000-0000-0000-0000-000000000001", in.byte(), 0);
  item one{.what = asked, .name = name, .field = field, .to_field = field};
  one.mode = static_cast<unsigned char>(in.pick(of.rules().modes));
  one.target = static_cast<std::int64_t>(in.pick(4));
  one.lease = any_number(in);
  one.bundled = asked == ask::acquire && of.acquire_all() && in.flip();
  one.repeated = in.flip();
  if (chosen.commands > 0) one.command = static_cast<unsigned char>(in.pick(chosen.commands));
  detail::words command;
  of.add_keys(one, command);
  of.add_arguments(one, command);
  auto const answer = any_reply(in);
  check(of, asked, one, answer, of.read(asked, one, answer));

  constexpr detail::query questions[] = {detail::query::is_locked,  detail::query::is_held_by,
                                         detail::query::hold_count, detail::query::time_to_live,
                                         detail::query::value,      detail::query::token};
  auto const question = in.any(questions);
  std::int64_t value = 0;
  if (of.read_query(question, answer, value)) must(!answer.is_error(), "an error is no answer to a question");
  of.wakes(in.rest());
  detail::classify(answer.text);
}

}  // namespace
}  // namespace latchkey::fuzz

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* bytes, std::size_t size) {
  latchkey::fuzz::once({bytes, size});
  return 0;
}
