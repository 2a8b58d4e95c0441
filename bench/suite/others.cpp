// A free pair in a client that holds and waits for much else, beside a client that does not.
#include <suite/rounds.hpp>
#include <suite/stage.hpp>

#include <latchkey/latchkey.hpp>

#include <atomic>
#include <future>
#include <thread>

namespace bench {
namespace {

using namespace std::chrono_literals;

// Waits until `count` is at least `wanted`.
template <class Count>
void await(Count count, std::uint64_t wanted) {
  auto const limit = std::chrono::steady_clock::now() + 60s;
  while (count() < wanted) {
    if (std::chrono::steady_clock::now() > limit) throw std::runtime_error("the others do not come");
    std::this_thread::sleep_for(1ms);
  }
}

// Holds on locks of their own, and waiters spread over locks that somebody else has.
class busy_client {
 public:
  static constexpr int busy_locks = 100;

  busy_client(latchkey::client const& client, latchkey::client const& holder) : client_(client) {
    for (int i = 0; i < busy_locks; ++i) held_.push_back(holder.get_lock(prefix_ + std::to_string(i)).acquire());
  }

  void grow(int wanted) {
    for (; count_ < wanted; ++count_) {
      auto const ignore = [](latchkey::error_code) {};
      client_.get_lock(prefix_ + "held:" + std::to_string(count_)).async_lock(me_, ignore);
      client_.get_lock(prefix_ + std::to_string(count_ % busy_locks)).async_lock(latchkey::owner::make(), ignore);
      if (count_ % 500 == 499) resolve();
    }
    resolve();
  }

 private:
  void resolve() {
    await([&] { return client_.snapshot().held; }, static_cast<std::uint64_t>(count_));
    await([&] { return client_.snapshot().waiting; }, static_cast<std::uint64_t>(count_));
  }

  std::string const prefix_ = new_name("others") + ":";
  latchkey::owner const me_ = latchkey::owner::make();
  latchkey::client const& client_;
  std::vector<latchkey::lease> held_;
  int count_ = 0;
};

}  // namespace

void run_others(stage& on) {
  latchkey::client const plain(on.uri()), loaded(on.uri()), holder(on.uri());
  auto const a = plain.get_lock(new_name("others"));
  auto const b = loaded.get_lock(new_name("others"));
  busy_client others(loaded, holder);
  auto const pair_of = [](latchkey::distributed_lock const& lock) {
    return [&lock] {
      lock.lock();
      lock.unlock();
    };
  };
  std::vector<side> const sides{blocking_side("nothing else", pair_of(a)), blocking_side("others", pair_of(b))};
  std::vector<std::pair<double, double>> points;
  regime const& what = *find_regime("back-to-back");
  for (auto const& one : sides) one.round(what);
  for (int const count : {10, 1'000, 100'000}) {
    on.say(std::to_string(count) + " other holds and as many waiters");
    others.grow(count);
    for (auto const& one : sides) one.round(what);
    auto const found = compare(what, on.rounds(), sides, on.server().pid());
    on.add({.name = "with " + std::to_string(count) + " others, p50",
            .unit = "us",
            .figure = found.sides[1].median_p50(),
            .against = "a pair without others",
            .reference = found.sides[0].median_p50(),
            .ratio = found.ratio_p50(1, 0),
            .most = 1.3,
            .note = found.note(1, 0)});
    points.emplace_back(count, found.sides[1].median_p50());
  }
  on.draw("pair by others", "p50 in us", points);
}

}  // namespace bench
