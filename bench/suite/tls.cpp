// The free pair by TLS, and what TLS costs.
#include <common/bare_client.hpp>
#include <common/bare_tls_client.hpp>
#include <suite/rounds.hpp>
#include <suite/stage.hpp>
#include <support/tls_server.hpp>

#include <latchkey/latchkey.hpp>

namespace bench {

namespace {

enum : std::size_t { bare_side, secured_side, open_side };

void add_tls(stage& on, regime const& what, comparison const& found) {
  std::string const way(what.meaning);
  auto const& secured = found.sides[secured_side];
  on.add({.name = way + ", p50",
          .unit = "us",
          .figure = secured.median_p50(),
          .against = "TLS floor",
          .reference = found.sides[bare_side].median_p50(),
          .ratio = found.ratio_p50(secured_side, bare_side),
          .most = 1.2,
          .note = found.note(secured_side, bare_side)});
  on.add({.name = way + ", CPU of a pair",
          .unit = "us",
          .figure = secured.median_cpu(),
          .against = "TLS floor",
          .reference = found.sides[bare_side].median_cpu(),
          .ratio = found.ratio_cpu(secured_side, bare_side)});
  on.add({.name = way + ", p50",
          .unit = "us",
          .figure = secured.median_p50(),
          .against = "latchkey without TLS",
          .reference = found.sides[open_side].median_p50(),
          .ratio = found.ratio_p50(secured_side, open_side),
          .note = found.note(secured_side, open_side)});
}

}  // namespace

void run_tls(stage& on) {
  auto const& papers = latchkey::test::common_certificates();
  auto const port = latchkey::test::free_port();
  latchkey::test::redis_server const server(
      {.tcp = true, .arguments = latchkey::test::tls_arguments(port, papers, "server", false)});
  // The scripts of the bare client are loaded by the other.
  bare_client(server.where().port, new_name("tls")).pair();
  bare_tls_client bare(port, papers.certificate("ca"), new_name("tls"));
  latchkey::client const secured("rediss://127.0.0.1:" + std::to_string(port), latchkey::test::with_tls({}));
  latchkey::client const open(server.uri());
  auto const secured_lock = secured.get_lock(new_name("tls"));
  auto const open_lock = open.get_lock(new_name("tls"));
  auto const pair_of = [](latchkey::distributed_lock const& which) {
    return [&which] {
      which.lock();
      which.unlock();
    };
  };
  std::vector<side> const sides{blocking_side("bare TLS client", [&] { bare.pair(); }),
                                blocking_side("latchkey, TLS", pair_of(secured_lock)),
                                blocking_side("latchkey", pair_of(open_lock))};
  for (auto const& one : sides) one.round(*find_regime("back-to-back"));
  for (auto const& what : all_regimes()) {
    on.say(std::string(what.meaning));
    int const rounds = what.period >= std::chrono::milliseconds(2) ? (on.rounds() + 2) / 3 : on.rounds();
    add_tls(on, what, compare(what, rounds, sides, server.pid()));
  }
}

}  // namespace bench
