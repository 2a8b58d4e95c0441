#pragma once

#include <torture/checker.hpp>
#include <torture/sections.hpp>

namespace latchkey::torture {

// The parts of check(); each counts and tells what it found. What counts is written in checker.hpp.
void check_exclusion(assembled const& all, verdict& out);
void check_tokens(assembled const& all, verdict& out);
void check_latches(assembled const& all, verdict& out);
void check_losses(assembled const& all, verdict& out);
void check_calls(assembled const& all, verdict& out);
void check_shares(assembled const& all, verdict& out);
void check_storms(assembled const& all, verdict& out);
void check_pools(run_history const& run, assembled const& all, verdict& out);
void check_remains(run_history const& run, verdict& out);

constexpr std::size_t most_findings = 50;   // are told; all are counted
constexpr std::int64_t grace = 3 * second;  // what a busy machine may add to a call before it counts as hung
constexpr std::int64_t lateness = second;   // and before it counts as late

inline void tell(verdict& out, std::uint64_t& counter, std::string text) {
  ++counter;
  if (out.findings.size() < most_findings) out.findings.push_back(std::move(text));
}

// Do these two keep each other out?
inline bool exclusive(section const& a, section const& b) { return !a.reads() || !b.reads(); }

// Milliseconds, for a reader.
std::string in_ms(std::int64_t nanoseconds);

}  // namespace latchkey::torture
