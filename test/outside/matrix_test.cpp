// Two takings and two endings of one lock, in every combination of ways and owners. After every step three witnesses
// must agree with what the contract says: the leases, a second client, and redis-cli.
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/event_log.hpp>
#include <support/kinds.hpp>
#include <support/patience.hpp>

#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <array>
#include <future>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

using namespace latchkey;
using namespace latchkey::outside;

namespace {

enum class taking {
  lock_by_thread,  // lock(), or try_lock() where that would wait
  try_by_thread,
  mutex_by_thread,
  async_by_thread,
  async_by_task,
  async_try_by_task,
  acquire_new,
  acquire_by_thread,
  acquire_by_task,
  async_acquire_by_task,
};
constexpr int takings = 10;

enum class ending {
  unlock_by_thread,
  mutex_by_thread,
  async_by_thread,
  async_by_task,
  release_first,  // the lease of the first taking
  release_second,
  async_release_first,
  async_release_second,
  drop_first,
  drop_second,
  force,
};
constexpr int endings = 11;

std::string to_string(taking way) {
  static constexpr std::array<char const*, takings> names{
      "lock() by the thread",        "try_lock() by the thread", "std_mutex::lock() by the thread",
      "async_lock by the thread",    "async_lock by a task",     "async_try_lock by a task",
      "acquire() by a new owner",    "acquire() by the thread",  "acquire() by the task",
      "async_acquire() by the task",
  };
  return names[static_cast<std::size_t>(way)];
}

std::string to_string(ending way) {
  static constexpr std::array<char const*, endings> names{
      "unlock()",
      "std_mutex::unlock()",
      "async_unlock(thread)",
      "async_unlock(task)",
      "release() of the first lease",
      "release() of the second lease",
      "async_release() of the first lease",
      "async_release() of the second lease",
      "end of the first lease's life",
      "end of the second lease's life",
      "force_unlock()",
  };
  return names[static_cast<std::size_t>(way)];
}

namespace asio = boost::asio;
using asio::use_future;

// What came of a step, in the words of the contract.
std::string said(std::function<void()> const& step) {
  try {
    step();
    return "done";
  } catch (boost::system::system_error const& error) {
    return error.code().message();
  }
}

std::string text_of(errc error) { return make_error_code(error).message(); }

// Does it give a lease?
bool shows(taking way) { return way >= taking::acquire_new; }

// Which of the two leases it ends.
std::optional<std::size_t> place_of(ending way) {
  switch (way) {
    case ending::release_first:
    case ending::async_release_first:
    case ending::drop_first: return 0;
    case ending::release_second:
    case ending::async_release_second:
    case ending::drop_second: return 1;
    default: return std::nullopt;
  }
}

class combination {
 public:
  combination(test::lock_kind const& kind, client const& ours, client const& second, redis_cli& cli,
              test::event_log const& log)
      : kind_(kind),
        ours_(ours),
        cli_(cli),
        log_(log),
        name_(fresh_name()),
        lock_(kind.of(ours, name_)),
        seen_elsewhere_(kind.of(second, name_)),
        elsewhere_(kind.exclusive ? kind.of(second, name_) : second.get_read_write_lock(name_).write_lock()) {}

  // What no lease shows is not ended by its going.
  ~combination() {
    for (hold const& one : holds_)
      if (!one.lease) said([&] { lock_.async_unlock(one.who, use_future).get(); });
  }

  void take(taking way) {
    std::size_t const place = taken_++;
    latchkey::owner const who = owner_of(way);
    bool const ours = std::any_of(holds_.begin(), holds_.end(), [&](hold const& one) { return one.who == who; });
    std::string expected = "done";
    if (!holds_.empty() && kind_.exclusive && !ours) expected = "busy";
    if (ours && !kind_.reenters) expected = text_of(errc::already_held);
    std::string const came = came_of(way, place, expected != "busy");
    note(to_string(way), came, expected);
    if (came == "done") holds_.push_back({who, shows(way) ? std::optional(place) : std::nullopt});
  }

  // False: there is no such lease.
  bool end(ending way) {
    std::optional<std::size_t> const place = place_of(way);
    if (place && !leases_[*place]) return false;
    if (way == ending::force && kind_.joint()) return false;
    bool dropped = false;
    if (place) {
      auto const shown =
          std::find_if(holds_.begin(), holds_.end(), [&](hold const& one) { return one.lease == place; });
      std::string expected = "expired";
      if (shown != holds_.end()) {
        latchkey::owner const who = shown->who;
        holds_.erase(shown);
        bool const more = std::any_of(holds_.begin(), holds_.end(), [&](hold const& one) { return one.who == who; });
        expected = more ? "still held" : "released";
      }
      std::string const came = came_of(way, *place);
      dropped = came == "dropped";
      note(to_string(way), came, dropped ? "dropped" : expected);
    } else if (way == ending::force) {
      bool forced = false;
      std::string const came = said([&] { forced = lock_.force_unlock(); });
      note(to_string(way), came + (forced ? ", true" : ", false"), holds_.empty() ? "done, false" : "done, true");
      holds_.clear();
    } else {
      latchkey::owner const who = way == ending::async_by_task ? task_ : latchkey::owner::this_thread();
      auto const newest =
          std::find_if(holds_.rbegin(), holds_.rend(), [&](hold const& one) { return one.who == who && !one.lease; });
      // A forced end is told to the owner's next unlock once; else there was nothing to end.
      std::string const came = came_of(way, std::nullopt);
      if (newest != holds_.rend()) {
        holds_.erase(std::next(newest).base());
        note(to_string(way), came, "done");
      } else {
        bool const honest = came == text_of(errc::not_owner) || came == text_of(errc::lease_lost) || came == "event";
        note(to_string(way), honest ? "refused" : came, "refused");
      }
    }
    look(dropped);
    return true;
  }

  void look(bool dropped = false) {
    INFO(kind_.name << story_.str());
    // A lease that was dropped is released in the background.
    REQUIRE(test::wait_until([&] { return agrees(); }));
    for (std::size_t place = 0; place < leases_.size(); ++place) {
      bool const holds = std::any_of(holds_.begin(), holds_.end(), [&](hold const& one) { return one.lease == place; });
      INFO("lease " << place + 1);
      REQUIRE(leases_[place].held() == holds);
      bool const lost = leases_[place] && !holds;
      REQUIRE(test::wait_until([&] { return leases_[place].lost().stop_requested() == lost; }));
    }
    REQUIRE(test::wait_until([&] { return seen_elsewhere_.is_locked() == !holds_.empty(); }));
    bool theirs = elsewhere_.try_lock();
    // A joint lock shows as free when the first of its members is. Of one that was dropped the others follow in the
    // background.
    if (dropped && kind_.joint() && holds_.empty() && !theirs)
      theirs = test::wait_until([&] { return elsewhere_.try_lock(); });
    REQUIRE(theirs == holds_.empty());
    if (theirs) elsewhere_.unlock();
  }

 private:
  struct hold {
    latchkey::owner who;
    std::optional<std::size_t> lease;  // the place of the one that shows it
  };

  latchkey::owner owner_of(taking way) {
    switch (way) {
      case taking::lock_by_thread:
      case taking::try_by_thread:
      case taking::mutex_by_thread:
      case taking::async_by_thread:
      case taking::acquire_by_thread: return latchkey::owner::this_thread();
      case taking::acquire_new: return latchkey::owner::make();  // known after the grant
      default: return task_;
    }
  }

  std::string came_of(taking way, std::size_t place, bool may_wait) {
    bool got = true;
    auto const me = latchkey::owner::this_thread();
    auto const keep = [&](latchkey::lease one) {
      got = static_cast<bool>(one);
      leases_[place] = std::move(one);
    };
    acquire_options once;
    once.wait = 0ms;
    std::string const came = said([&] {
      switch (way) {
        case taking::lock_by_thread: may_wait ? lock_.lock() : void(got = lock_.try_lock()); break;
        case taking::try_by_thread: got = lock_.try_lock(); break;
        case taking::mutex_by_thread:
          may_wait ? lock_.as_mutex().lock() : void(got = lock_.as_mutex().try_lock());
          break;
        case taking::async_by_thread:
          may_wait ? lock_.async_lock(me, use_future).get() : void(got = lock_.async_try_lock(me, use_future).get());
          break;
        case taking::async_by_task:
          may_wait ? lock_.async_lock(task_, use_future).get()
                   : void(got = lock_.async_try_lock(task_, use_future).get());
          break;
        case taking::async_try_by_task: got = lock_.async_try_lock(task_, use_future).get(); break;
        case taking::acquire_new: keep(lock_.acquire(once)); break;
        case taking::acquire_by_thread:
          once.owner = me;
          keep(lock_.acquire(once));
          break;
        case taking::acquire_by_task:
          once.owner = task_;
          keep(lock_.acquire(once));
          break;
        case taking::async_acquire_by_task:
          once.owner = task_;
          keep(lock_.async_acquire(once, use_future).get());
          break;
      }
    });
    return came == "done" && !got ? "busy" : came;
  }

  std::string came_of(ending way, std::optional<std::size_t> place) {
    release_result found = release_result::released;
    log_.catch_up(ours_);
    int const failed = log_.count(event_type::unlock_failed);
    std::string const came = said([&] {
      switch (way) {
        case ending::unlock_by_thread: lock_.unlock(); break;
        case ending::mutex_by_thread: lock_.as_mutex().unlock(); break;
        case ending::async_by_thread: lock_.async_unlock(latchkey::owner::this_thread(), use_future).get(); break;
        case ending::async_by_task: lock_.async_unlock(task_, use_future).get(); break;
        case ending::release_first:
        case ending::release_second: found = leases_[*place].release(); break;
        case ending::async_release_first:
        case ending::async_release_second: found = leases_[*place].async_release(use_future).get(); break;
        case ending::drop_first:
        case ending::drop_second: leases_[*place] = latchkey::lease(); break;
        case ending::force: break;
      }
    });
    if (way == ending::drop_first || way == ending::drop_second) return "dropped";
    log_.catch_up(ours_);
    if (!place) return log_.count(event_type::unlock_failed) > failed ? "event" : came;
    if (came != "done") return came;
    switch (found) {
      case release_result::released: return "released";
      case release_result::still_held: return "still held";
      case release_result::expired: return "expired";
      default: return "unknown";
    }
  }

  void note(std::string const& step, std::string const& came, std::string const& expected) {
    story_ << "; " << step << ": " << came;
    INFO(kind_.name << story_.str());
    REQUIRE(came == expected);
  }

  // How often redis-cli sees this owner hold each of the keys; the least of them.
  int count_of(latchkey::owner who) {
    int least = std::numeric_limits<int>::max();
    for (int i = 0; i < kind_.members; ++i) {
      std::string const key = test::member_name(name_, i);
      std::string const field = ours_.id() + ":" + latchkey::to_string(who) + kind_.side;
      auto const lines = cli_.ask((kind_.is_string ? "GET " : "HGET ") + key + (kind_.is_string ? "" : " " + field));
      std::string const value = lines.empty() ? std::string() : lines.front();
      int const count = value.empty() ? 0 : kind_.is_string ? 1 : std::stoi(value);
      least = std::min(least, count);
    }
    return least;
  }

  bool agrees() {
    for (hold const& one : holds_) {
      auto const count = std::count_if(holds_.begin(), holds_.end(), [&](hold const& h) { return h.who == one.who; });
      if (one.lease && !is_new(one) && leases_[*one.lease].owner() != one.who) return false;
      if (count_of(real_owner(one)) != static_cast<int>(count)) return false;
    }
    if (holds_.empty() && count_of(latchkey::owner::this_thread()) + count_of(task_) != 0) return false;
    return true;
  }
  bool is_new(hold const& one) const { return one.who != task_ && one.who != latchkey::owner::this_thread(); }
  latchkey::owner real_owner(hold const& one) const { return is_new(one) ? leases_[*one.lease].owner() : one.who; }

  test::lock_kind const& kind_;
  client const& ours_;
  redis_cli& cli_;
  test::event_log const& log_;
  std::string const name_;
  distributed_lock const lock_;
  distributed_lock const seen_elsewhere_;
  distributed_lock const elsewhere_;  // of the side that any hold keeps out
  latchkey::owner const task_ = latchkey::owner::make();
  std::vector<hold> holds_;
  std::array<latchkey::lease, 2> leases_;
  std::size_t taken_ = 0;
  std::ostringstream story_;
};

struct ways {
  taking first, then;
  ending ends, last;
};
constexpr int combinations = takings * takings * endings * endings;
ways ways_of(int number) {
  return {static_cast<taking>(number / (takings * endings * endings)),
          static_cast<taking>(number / (endings * endings) % takings), static_cast<ending>(number / endings % endings),
          static_cast<ending>(number % endings)};
}

// A lease that was not asked for cannot be ended.
bool possible(ways const& of) {
  for (ending const way : {of.ends, of.last}) {
    auto const place = place_of(way);
    if (place && !shows(*place == 0 ? of.first : of.then)) return false;
  }
  return true;
}

// Pairs of ways, of each two of the four places.
int pairs_met(int stride) {
  bool met[4][4][endings][endings]{};
  int count = 0;
  for (int number = 0; number < combinations; number += stride) {
    ways const all = ways_of(number);
    if (!possible(all)) continue;
    int const way[]{static_cast<int>(all.first), static_cast<int>(all.then), static_cast<int>(all.ends),
                    static_cast<int>(all.last)};
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < i; ++j) count += !std::exchange(met[i][j][way[i]][way[j]], true);
  }
  return count;
}

// Without `--long` every third combination is played, and under a sanitizer, which looks for other faults, every
// 31st of these.
constexpr int short_stride = 3;
constexpr int sanitized_stride = 31;

void play(test::lock_kind const& kind) {
  server& redis = shared_server();
  test::event_log log;
  client ours(redis.uri(), {.on_event = log.callback()});
  client second(redis.uri());
  redis_cli cli(redis.socket());
  int const stride = (test::in_long_form() ? 1 : short_stride) * (test::slowness == 1 ? 1 : sanitized_stride);
  for (int number = 0; number < combinations; number += stride) {
    auto const [first, then, ends, last] = ways_of(number);
    if (!possible({first, then, ends, last})) continue;
    combination play(kind, ours, second, cli, log);
    play.take(first);
    if (ends == ending{} && last == ending{}) play.look();  // the same in all of them
    play.take(then);
    play.look();
    if (play.end(ends)) play.end(last);
  }
}

}  // namespace

TEST_CASE("a third of the matrix has every pair of ways", "[outside][matrix]") {
  CHECK(pairs_met(short_stride) == pairs_met(1));
  CHECK(pairs_met(endings) < pairs_met(1));  // nor would every stride do
}

TEST_CASE("every way of taking with every way of ending, two deep: locks whose key is a hash of their own",
          "[outside][matrix][edge-1][edge-3]") {
  std::size_t const which = GENERATE(range(std::size_t{0}, std::size_t{5}));
  play(latchkey::test::lock_kinds()[which]);
}

TEST_CASE("every way of taking with every way of ending, two deep: the other kinds",
          "[outside][matrix][edge-1][edge-3]") {
  std::size_t const which = GENERATE(range(std::size_t{5}, latchkey::test::lock_kinds().size()));
  play(latchkey::test::lock_kinds()[which]);
}
