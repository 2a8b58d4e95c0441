// What a pair of acquire and release costs in the library's own code, without a socket: the machines against canned
// answers, and the codec alone.
#include <codec/command_writer.hpp>
#include <machines/world.hpp>

#include <benchmark/benchmark.h>

namespace {

using namespace bench;

void pair_on_direct_lane(benchmark::State& state) {
  world it;
  for (auto _ : state)
    if (!it.pair(true)) state.SkipWithError("the direct lane was not used");
}
BENCHMARK(pair_on_direct_lane);

void pair_on_shared_lane(benchmark::State& state) {
  world it;
  for (auto _ : state) it.pair(false);
}
BENCHMARK(pair_on_shared_lane);

void write_command(benchmark::State& state) {
  words command;
  std::string out;
  for (auto _ : state) {
    command.clear();
    for (std::string_view word : {"EVALSHA", "0123456789abcdef0123456789abcdef01234567", "1", "bench",
                                  "00000000-0000-4000-8000-000000000000:1", "1", "30000"})
      command.add(word);
    out.clear();
    append_command(out, command);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(write_command);

void read_reply(benchmark::State& state) {
  reply_reader reader;
  reply answer;
  for (auto _ : state) {
    reader.feed(granted_bytes);
    if (reader.next(answer) != reply_reader::result::reply) state.SkipWithError("no reply");
  }
}
BENCHMARK(read_reply);

}  // namespace

BENCHMARK_MAIN();
