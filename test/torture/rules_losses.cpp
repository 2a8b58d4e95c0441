#include <torture/rules.hpp>

#include <algorithm>

namespace latchkey::torture {

namespace {

bool was_told(section const& one) {
  return (one.told & (told_by_held | told_by_lost)) != 0 || one.ended_as(outcome::expired);
}

void unreported(verdict& out, section const& one, std::string const& why) {
  tell(out, out.lost_unreported, "LOST, UNREPORTED: " + one.name() + ": " + why);
}

void trusted_too_long(assembled const& all, section const& one, verdict& out) {
  auto const& kind = torture_kinds()[one.kind];
  if (one.lease != 0 && one.longest == one.lease && one.trusted > one.granted + one.lease)
    unreported(out, one, "trusted " + in_ms(one.trusted - one.granted - one.lease) + " beyond a lease of its own");
  if (kind.servers > 1) return;  // one server says nothing about a majority
  if (auto const found = all.deletions.find({one.kind, one.lock}); found != all.deletions.end())
    for (auto const& gone : found->second)
      if (gone.certain && gone.begin > one.granted && one.trusted > gone.end + one.longest)
        return unreported(out, one, "trusted " + in_ms(one.trusted - gone.end) + " after a stranger had removed it");
  if (auto const found = all.outages.find(0); found != all.outages.end())
    for (auto const& [begin, end] : found->second)
      if (begin > one.granted && one.trusted > begin + one.longest && one.trusted < end)
        return unreported(out, one, "trusted " + in_ms(one.trusted - begin) + " after the server went away");
}

bool connection_lost_in(assembled const& all, section const& one) {
  auto const found = all.disconnects.find(one.of);
  if (found == all.disconnects.end()) return false;
  auto const at = std::lower_bound(found->second.begin(), found->second.end(), one.left);
  return at != found->second.end() && *at <= one.released;
}

// Granted before a stranger removed it, perhaps, and told of that grant only after others were of theirs. Not one that
// was released: its release found it.
bool may_be_older(assembled const& all, section const& one) {
  auto const found = all.deletions.find({one.kind, one.lock});
  return found != all.deletions.end() && !one.ended_as(outcome::released) &&
         std::any_of(found->second.begin(), found->second.end(),
                     [&](deletion const& gone) { return gone.end >= one.asked && gone.begin <= one.granted; });
}

// Whoever was granted while this one had not yet begun its release ended it. A grant that was not trusted when its
// thread came to look says nothing: the thread may have been told late, when the lock had passed on.
void dishonest_release(assembled const& all, std::vector<section const*> const& some, verdict& out) {
  for (std::size_t i = 0; i < some.size(); ++i) {
    auto const& one = *some[i];
    if (!one.ended_as(outcome::released)) continue;
    for (auto next = i + 1; next < some.size() && some[next]->granted < one.left; ++next) {
      if (!some[next]->was_trusted() || may_be_older(all, *some[next])) continue;
      if (!exclusive(one, *some[next]) || connection_lost_in(all, one)) continue;
      unreported(out, one, "released, it was told, when it had been granted to " + some[next]->name());
      break;
    }
  }
}

}  // namespace

void check_losses(assembled const& all, verdict& out) {
  for (auto const& one : all.sections) {
    if (one.granted == 0) continue;
    if (was_told(one)) ++out.lost_reported;
    if (one.told & told_silently) unreported(out, one, "held() was false, and lost() did not say so");
    if (torture_kinds()[one.kind].leased && one.was_trusted()) trusted_too_long(all, one, out);
  }
  for (auto const& [lock, some] : all.by_lock()) {
    auto const& kind = torture_kinds()[lock.first];
    bool const single = kind.who == rule::alone || kind.who == rule::readers_writer;
    if (single && kind.servers == 1) dishonest_release(all, some, out);
  }
}

}  // namespace latchkey::torture
