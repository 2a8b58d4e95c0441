#include <latchkey/error.hpp>
#include <torture/rules.hpp>

namespace latchkey::torture {

namespace {

// Did its release end with an error of the server's, after which nothing has changed? The workers do not repeat it.
bool release_refused(section const& one) {
  return one.ended_as(static_cast<outcome>(static_cast<std::uint32_t>(outcome::error) +
                                           static_cast<std::uint32_t>(errc::server_error)));
}

// May this section have kept its permit for ever?
bool may_keep(assembled const& all, section const& one) {
  if (release_refused(one)) return true;
  if (!all.killed.contains(one.of)) return false;
  bool const refused_for_sure = one.refused != 0 && one.code == 0;
  return !refused_for_sure && !one.ended_as(outcome::released);
}

}  // namespace

void check_pools(run_history const& run, assembled const& all, verdict& out) {
  std::map<lock_id, std::int64_t> kept;
  for (auto const& one : all.sections)
    if (may_keep(all, one)) ++kept[{one.kind, one.lock}];
  for (auto const& line : run.coordinator) {
    if (line.what != what::pool) continue;
    auto const name = lock_name(line.kind, line.lock) + " was left with " + std::to_string(line.a) + " permits";
    auto const least = permits - kept[{line.kind, line.lock}];
    if (line.a > permits) tell(out, out.violations, "VIOLATION: " + name);
    if (line.a < least) tell(out, out.leaked, "LEAKED: " + name + ", not " + std::to_string(least));
  }
}

}  // namespace latchkey::torture
