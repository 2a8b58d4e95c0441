#include <demo/options.hpp>
#include <fuzz/input.hpp>
#include <simulation/options.hpp>
#include <suite/options.hpp>

#include <vector>

// Any words on the command lines of the demo, of the benchmark and of the simulation: options within their bounds, or
// a refusal. The first byte chooses the program, line feeds part the words.

// What the options are looked up in. The programs have rows and groups that run something; here names are enough.
namespace demo {
std::optional<std::size_t> find_row(std::string_view name) {
  return name == "no-lock" ? std::optional<std::size_t>(0) : std::nullopt;
}
std::string row_names() { return "no-lock"; }
std::span<row const> all_rows() { return {}; }
}  // namespace demo

namespace bench {
std::span<group const> all_groups() {
  static group const one{"idle", "", nullptr};
  return {&one, 1};
}
}  // namespace bench

namespace latchkey::simulation {
std::vector<std::unique_ptr<simulated_kind>> const& simulated_kinds() {
  static std::vector<std::unique_ptr<simulated_kind>> const none;
  return none;
}
}  // namespace latchkey::simulation

namespace latchkey::fuzz {
namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> made;
  while (!text.empty()) {
    auto const end = text.find('\n');
    made.emplace_back(text.substr(0, end));
    // A command line has no zero in it.
    made.back() = made.back().c_str();
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return made;
}

void try_demo(std::vector<std::string> const& words) try {
  auto const made = demo::parse_options(words);
  must(made.requests >= 1 && made.requests <= 1'000'000, "as many requests as allowed");
  must(made.processes >= 1 && made.processes <= made.concurrency, "no process without a request");
  for (auto const& name : made.only) must(demo::find_row(name).has_value(), "only rows that there are");
} catch (demo::bad_option const& problem) {
  must(*problem.what() != '\0', "a refusal says why");
}

// Help, or wrong usage, or options.
template <class Options>
bool read(std::vector<std::string> const& words, std::optional<int> (&read_options)(int, char const* const*, Options&),
          Options& made) {
  std::vector<char const*> pointers{"program"};
  for (auto const& word : words) pointers.push_back(word.c_str());
  auto const code = read_options(static_cast<int>(pointers.size()), pointers.data(), made);
  must(!code || *code == 0 || *code == 2, "help, or wrong usage");
  return !code;
}

void try_bench(std::vector<std::string> const& words) {
  bench::suite_options made;
  if (!read(words, bench::read_options, made)) return;
  must(made.rounds >= 1 && made.rounds <= 1'000, "as many rounds as allowed");
  for (auto const* one : made.only) must(one != nullptr, "only groups that there are");
}

void try_simulate(std::vector<std::string> const& words) {
  simulation::options made;
  if (!read(words, simulation::read_options, made)) return;
  must(made.seeds > 0 && made.steps > 0 && made.clients <= 8, "numbers within their bounds");
  must(made.minutes >= 0, "a time that can pass");
}

}  // namespace
}  // namespace latchkey::fuzz

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* bytes, std::size_t size) {
  using namespace latchkey::fuzz;
  input in(bytes, size);
  auto const program = in.pick(3);
  auto const words = words_of(in.rest());
  if (program == 0) try_demo(words);
  if (program == 1) try_bench(words);
  if (program == 2) try_simulate(words);
  return 0;
}
