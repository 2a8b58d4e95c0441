#include <torture/rules.hpp>

#include <algorithm>

namespace latchkey::torture {

namespace {

class call_rules {
 public:
  call_rules(assembled const& all, verdict& out) : all_(all), out_(out) {}

  // `end` is 0 if the history does not have it. `due`: what the caller was promised; never above `limit`.
  void look(process_history const& of, std::string const& name, std::int64_t begin, std::int64_t end,
            std::int64_t limit, std::int64_t due) {
    if (end != 0) return too_long(of, name, begin, end, limit, due);
    auto const killed = all_.killed.find(&of);
    if (killed != all_.killed.end()) return too_long(of, name, begin, killed->second, limit, due);
    // Who ended by itself had nothing more to wait for.
    if (all_.over.contains(&of)) tell(out_, out_.hung, "HUNG: " + name + " has no end");
  }

 private:
  void too_long(process_history const& of, std::string const& name, std::int64_t begin, std::int64_t end,
                std::int64_t limit, std::int64_t due) {
    auto const took = all_.net(of, begin, end);
    if (took > due + lateness)
      tell(out_, out_.late, "LATE: " + name + " took " + in_ms(took) + ", and had time for " + in_ms(due));
    if (took > limit + grace)
      tell(out_, out_.hung, "HUNG: " + name + " took " + in_ms(took) + ", which may take " + in_ms(limit));
  }

  assembled const& all_;
  verdict& out_;
};

char const* name_of(call which) {
  switch (which) {
    case call::close: return "close";
    case call::set_count: return "try_set_count";
    case call::count_down: return "count_down";
    case call::set_permits: return "try_set_permits";
  }
  return "?";
}

}  // namespace

void check_calls(assembled const& all, verdict& out) {
  call_rules rules(all, out);
  for (auto const& one : all.sections) {
    rules.look(*one.of, "to acquire, " + one.name() + ",", one.asked, std::max(one.granted, one.refused), one.ask_limit,
               one.wait > 0 ? one.wait : one.ask_limit);
    if (one.left != 0)
      rules.look(*one.of, "to release, " + one.name() + ",", one.left, one.released, one.release_limit,
                 one.release_limit);
    if (one.refused != 0) ++out.refused;
    if ((one.mode & mode::final_round) != 0 && one.refused != 0)
      tell(out, out.hung,
           "HUNG: when all was healed, a lock could not be had (" + std::to_string(one.code) + "): " + one.name());
  }
  for (auto const& one : all.calls)
    rules.look(*one.of,
               std::string(name_of(one.which)) + " of worker " + std::to_string(one.of->index) + "." +
                   std::to_string(one.of->incarnation) + ", call " + std::to_string(one.number) + ",",
               one.begun, one.ended, one.limit, one.limit);
  for (auto const* one : all.overdue)
    tell(out, out.hung,
         "HUNG: worker " + std::to_string(one->index) + "." + std::to_string(one->incarnation) + " did not end");
}

void check_remains(run_history const& run, verdict& out) {
  for (auto const& one : run.workers) {
    auto const who = "worker " + std::to_string(one.index) + "." + std::to_string(one.incarnation);
    for (auto const& line : one.lines) {
      if (line.what == what::rest && (line.a != 0 || line.b != 0 || line.c != 0 || line.code != 0))
        tell(out, out.leaked,
             "LEAKED: the clients of " + who + " still had " + std::to_string(line.a) + " holds, " +
                 std::to_string(line.b) + " waiters, " + std::to_string(line.c) + " requests without an outcome, " +
                 std::to_string(line.code) + " subscriptions");
      if (line.what == what::over && line.a > 0)
        tell(out, out.leaked, "LEAKED: " + std::to_string(line.a) + " descriptors of " + who);
    }
  }
  for (auto const& one : run.left_behind) tell(out, out.leaked, "LEAKED: " + one);
  for (auto const& one : run.accidents) tell(out, out.violations, "VIOLATION: " + one);
}

}  // namespace latchkey::torture
