// As matrix_test.cpp, for permits: two are taken and two are ended in every combination, by object and by id.
#include <outside/outsider.hpp>
#include <support/catch.hpp>
#include <support/patience.hpp>

#include <boost/asio/use_future.hpp>

#include <array>
#include <sstream>

using namespace latchkey;
using namespace latchkey::outside;

namespace {

using boost::asio::use_future;

constexpr int permit_takings = 6;
constexpr int permit_endings = 9;

class permits_played {
 public:
  permits_played(client const& ours, client const& second, redis_cli& cli)
      : cli_(cli),
        name_(fresh_name()),
        semaphore_(ours.get_permit_semaphore(name_)),
        elsewhere_(second.get_permit_semaphore(name_)) {
    semaphore_.set_permits(2);
  }

  void take(int way) {
    one& taken = taken_[count_++];
    acquire_options brief;
    brief.lease = 60s;
    switch (way) {
      case 0: taken.id = semaphore_.acquire(); break;
      case 1: taken.id = semaphore_.acquire(60s); break;
      case 2: taken.id = semaphore_.try_acquire().value(); break;
      case 3: taken.object = semaphore_.acquire_permit(); break;
      case 4: taken.object = semaphore_.acquire_permit(brief); break;
      default: taken.object = semaphore_.async_acquire_permit(brief, use_future).get(); break;
    }
    if (way >= 3) taken.id = taken.object.id();
    taken.is_object = way >= 3;
    taken.out = true;
    story_ << " take " << way;
    look();
  }

  void end(std::size_t which, int way) {
    one& ended = taken_[which];
    story_ << " end " << which << ":" << way;
    bool const was_out = ended.out;
    std::string came;
    try {
      switch (way) {
        case 0:
          semaphore_.release(ended.id);
          came = "given back";
          break;
        case 1: came = semaphore_.try_release(ended.id) ? "given back" : "unknown id"; break;
        case 2:
          semaphore_.async_release(ended.id, use_future).get();
          came = "given back";
          break;
        case 3: came = semaphore_.async_try_release(ended.id, use_future).get() ? "given back" : "unknown id"; break;
        case 4: came = elsewhere_.try_release(ended.id) ? "given back" : "unknown id"; break;
        case 5:
          if (!ended.is_object) return;
          came = ended.object.release() == release_result::released ? "given back" : "unknown id";
          break;
        case 6:
          if (!ended.is_object) return;
          came = ended.object.async_release(use_future).get() == release_result::released ? "given back" : "unknown id";
          break;
        case 7:
          if (!ended.is_object) return;
          ended.object = permit();
          came = was_out ? "given back" : "unknown id";
          break;
        default: return look();
      }
    } catch (boost::system::system_error const&) {
      came = "unknown id";
    }
    INFO(story_.str());
    REQUIRE(came == (was_out ? "given back" : "unknown id"));
    ended.out = false;
    ended.told_later = way == 4;  // another client ended it: told by the next renewal, or when the lease ends
    look();
  }

 private:
  struct one {
    std::string id;
    permit object;
    bool is_object = false;
    bool out = false;
    bool told_later = false;
  };

  void look() {
    INFO(story_.str());
    int out = 0;
    for (std::size_t i = 0; i < count_; ++i) out += taken_[i].out;
    REQUIRE(test::wait_until([&] { return elsewhere_.available_permits() == 2 - out; }));
    REQUIRE(cli_.ask("ZCARD {" + name_ + "}:timeout").front() == std::to_string(out));
    for (std::size_t i = 0; i < count_; ++i) {
      one const& taken = taken_[i];
      if (!taken.is_object || taken.told_later) continue;
      REQUIRE(taken.object.held() == taken.out);
      bool const lost = taken.object && !taken.out;
      REQUIRE(test::wait_until([&] { return taken.object.lost().stop_requested() == lost; }));
    }
  }

  redis_cli& cli_;
  std::string const name_;
  permit_semaphore const semaphore_;
  permit_semaphore const elsewhere_;
  std::array<one, 2> taken_;
  std::size_t count_ = 0;
  std::ostringstream story_;
};

}  // namespace

TEST_CASE("every way of taking and of ending two permits", "[outside][matrix][edge-2]") {
  server& redis = shared_server();
  client ours(redis.uri());
  client second(redis.uri());
  redis_cli cli(redis.socket());
  constexpr int stride = test::slowness == 1 ? 1 : 7;  // prime to the number of ways, as in matrix_test
  int number = 0;
  for (int first = 0; first < permit_takings; ++first)
    for (int then = 0; then < permit_takings; ++then)
      for (int ends = 0; ends < permit_endings; ++ends)
        for (int last = 0; last < permit_endings; ++last)
          for (std::size_t which = 0; which < 2; ++which) {
            if (number++ % stride != 0) continue;
            permits_played play(ours, second, cli);
            play.take(first);
            play.take(then);
            play.end(which, ends);
            play.end(1 - which, last);
            play.end(which, last);
          }
}
