#include "verdict.hpp"

#include "format.hpp"

#include <algorithm>

namespace demo {
namespace {

std::vector<row_result const*> select(std::vector<row_result> const& results, bool (*wanted)(way)) {
  std::vector<row_result const*> found;
  for (auto const& result : results) {
    if (wanted(result.how)) found.push_back(&result);
  }
  return found;
}

bool slower(row_result const* a, row_result const* b) { return a->per_second() < b->per_second(); }
bool shorter_wait(row_result const* a, row_result const* b) { return a->p99_ms < b->p99_ms; }

// "1.6 times"; from ten on the digit after the point says nothing.
std::string times(double factor) { return fixed(factor, factor < 9.95 ? 1 : 0) + " times"; }

std::string comparison(std::vector<row_result const*> const& recipes, std::vector<row_result const*> const& ours) {
  auto const& fastest = **std::max_element(recipes.begin(), recipes.end(), slower);
  auto const& slowest = **std::min_element(ours.begin(), ours.end(), slower);
  auto const& quickest = **std::min_element(recipes.begin(), recipes.end(), shorter_wait);
  auto const& longest = **std::max_element(ours.begin(), ours.end(), shorter_wait);
  if (fastest.per_second() <= 0 || longest.p99_ms <= 0) return {};
  auto const speed = slowest.per_second() / fastest.per_second();
  auto const wait = quickest.p99_ms / longest.p99_ms;
  return "; its slowest row served " + times(speed) + " as many requests per second as the fastest recipe, with " +
         (wait >= 1 ? "a p99 wait " + times(wait) + " shorter" : "a p99 wait " + times(1 / wait) + " longer") +
         " than the best of them";
}

std::string fault(row_result const& result) {
  std::string text;
  auto const add = [&](std::int64_t count, std::string const& what) {
    if (count != 0) text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + what;
  };
  if (is_latchkey(result.how)) {
    add(result.oversold(), "oversold");
    add(result.requested - result.done - result.lost - result.hung - result.failed, "not served");
  }
  add(result.lost, "lost");
  add(result.hung, "hung");
  add(result.failed, "failed");
  return text.empty() ? result.error : text + (result.error.empty() ? "" : " (" + result.error + ")");
}

}  // namespace

bool row_is_good(row_result const& result) {
  if (!result.error.empty() || result.failed > 0) return false;
  if (!is_latchkey(result.how)) return true;
  return result.oversold() == 0 && result.done == result.requested;
}

std::string conclusion(std::vector<row_result> const& results) {
  for (auto const& result : results) {
    if (!row_is_good(result)) return "FAILED: " + result.label + ": " + fault(result) + ".";
  }
  auto const ours = select(results, is_latchkey);
  auto const recipes = select(results, [](way how) { return how == way::recipe; });
  std::string text;
  for (auto const* result : select(results, [](way how) { return how == way::no_lock; })) {
    text += "Without a lock " + std::to_string(result->oversold()) + " of " + std::to_string(result->bought) +
            " sales were oversold. ";
  }
  if (ours.empty()) return text.empty() ? "Done." : text.substr(0, text.size() - 1);
  text += "latchkey oversold nothing";
  if (!recipes.empty()) text += comparison(recipes, ours);
  return text + ".";
}

}  // namespace demo
