#include <machine/lock_name.hpp>

#include <cerrno>
#include <utility>

namespace latchkey::detail {

void lock_name::note_gave_up(operation const& call) const {
  static error_code const cancelled(ECANCELED, boost::system::system_category());
  error_code const why = call.error ? call.error : errc::busy;
  auto const count = [&](auto counter) { ++(shared_.counters.*counter.first), ++(tally_.*counter.second); };
  if (why == errc::busy)
    count(std::pair(&stats::busy, &kind_stats::busy));
  else if (why == errc::timeout)
    count(std::pair(&stats::timeouts, &kind_stats::timeouts));
  else if (why != cancelled)
    count(std::pair(&stats::errors, &kind_stats::errors));
  note(event_type::gave_up, call.owner, why, call.text, shared_.now - call.started, context_of(call.link));
}

}  // namespace latchkey::detail
