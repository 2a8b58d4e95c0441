#include <common/bare_client.hpp>
#include <pair/measure.hpp>
#include <pair/options.hpp>
#include <pair/report.hpp>
#include <support/redis_server.hpp>

#include <latchkey/latchkey.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>

namespace {

using namespace bench;

// Both sides know their scripts, have their connections, and have touched their memory.
constexpr int warm_up_pairs = 300;

int run(options const& wanted) {
  std::string const machine = describe_machine();
  std::printf("Machine: %s.\n", machine.c_str());
#ifndef NDEBUG
  std::printf("Not a release build: the figures say nothing.\n");
#endif
  std::printf("One pair is lock() + unlock(), over loopback TCP. Medians over %d rounds of each side, alternating.\n\n",
              wanted.rounds);

  latchkey::test::redis_server const server({.tcp = true});
  bare_client bare(server.where().port, "bench-a");
  latchkey::client const client(server.uri());
  auto const lock = client.get_lock("bench-b");
  auto const by_hand = [&] { bare.pair(); };
  auto const by_latchkey = [&] {
    lock.lock();
    lock.unlock();
  };
  for (int i = 0; i < warm_up_pairs; ++i) {
    by_hand();
    by_latchkey();
  }

  std::fputs(table_head().c_str(), stdout);
  std::vector<regime_result> results;
  for (auto const& one : all_regimes()) {
    if (!wanted.only.empty() && std::find(wanted.only.begin(), wanted.only.end(), &one) == wanted.only.end()) continue;
    results.push_back(measure(one, wanted.rounds, by_hand, by_latchkey, {server.pid()}));
    std::fputs(table_line(results.back()).c_str(), stdout);
    std::fflush(stdout);
  }
  std::printf("\n%s", remarks(results).c_str());

  if (!wanted.json.empty()) {
    std::ofstream file(wanted.json);
    file << to_json(machine, results);
    file.close();
    if (!file) throw std::runtime_error("cannot write " + wanted.json);
  }
  bool const all_kept = std::all_of(results.begin(), results.end(), [](auto const& one) { return one.kept(); });
  return all_kept ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  try {
    options const wanted = parse_options({words + 1, words + count});
    if (!wanted.help) return run(wanted);
    std::fputs(help_text().c_str(), stdout);
    return 0;
  } catch (bad_option const& problem) {
    std::fprintf(stderr, "pair: %s\nTry: pair --help\n", problem.what());
    return 2;
  } catch (std::exception const& problem) {
    std::fprintf(stderr, "pair: %s\n", problem.what());
    return 1;
  }
}
