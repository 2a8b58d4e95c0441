// What a lease shows beside what the server has.
#include <outside/outsider.hpp>
#include <support/catch.hpp>

using namespace latchkey;
using namespace latchkey::outside;

TEST_CASE("a lease, a second client and redis-cli say the same of a hold", "[outside]") {
  server& redis = shared_server();
  client ours(redis.uri());
  client second(redis.uri());
  auto const name = fresh_name();
  lease held = ours.get_lock(name).acquire();
  CHECK(held.held());
  CHECK_FALSE(second.get_lock(name).try_lock());
  CHECK(redis.hash(name) == std::map<std::string, std::string>{{ours.id() + ":" + to_string(held.owner()), "1"}});
  CHECK(held.remaining() <= redis.pttl(name) + 5ms);
  CHECK(held.release() == release_result::released);
  CHECK_FALSE(held.held());
  CHECK_FALSE(redis.exists(name));
}
