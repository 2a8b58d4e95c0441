#include <simulation/simulation.hpp>
#include <cstdio>
#include <cstdlib>
using namespace latchkey::simulation;
int main(int argc, char** argv) {
  lua_scripts scripts;
  std::uint64_t first = std::strtoull(argv[1], nullptr, 10), count = std::strtoull(argv[2], nullptr, 10);
  int bad = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    run_options o; o.kind = simulated_kinds()[0].get(); o.seed = seed; o.trace = argc > 3;
    simulation s(o, scripts);
    try { s.run(); if (o.trace) for (auto& l : s.told()) std::puts(l.c_str()); } catch (violation const& v) {
      if (o.trace) for (auto& l : s.told()) std::puts(l.c_str());
      std::printf("seed %lu: %s\n", seed, v.what()); if (++bad > 15) return 1; }
  }
}
