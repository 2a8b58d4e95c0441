#include <api/single_lock.hpp>
#include <engine/requests.hpp>
#include <joint/join.hpp>
#include <support/bounded_kind.hpp>
#include <support/catch.hpp>
#include <support/configs.hpp>
#include <support/redis_server.hpp>

#include <memory>
#include <optional>
#include <string>

using namespace latchkey;
using namespace latchkey::detail;
using namespace latchkey::test;

// Handles of a kind with a parameter.

namespace {

using key_ptr = std::shared_ptr<lock_key const>;

struct bounded_room {
  bounded_room() = default;
  ~bounded_room() { engine->close(); }

  // Of a kind that is made for it alone.
  // [handle]
  key_ptr handle(int most_again) const {
    return std::make_shared<single_lock const>(engine, name, *bounded_kind(most_again));
  }
  // [/handle]

  std::string const name = new_name();
  std::shared_ptr<core> const engine = core::make(std::nullopt, common_server().uri(), config{});
};

error_code take(lock_key const& key, owner who) {
  blocking_call one;
  throw_if(fill_acquire(one, key, {who, std::nullopt, std::nullopt, std::nullopt}));
  key.run(one);
  return one.error;
}

error_code give(lock_key const& key, owner who) {
  blocking_call one;
  throw_if(fill_release(one, key, who, 0));
  key.run(one);
  return one.error;
}

}  // namespace

TEST_CASE("kind with a parameter: handles keep it, and equal ones are one lock") {
  bounded_room const room;
  owner const me = owner::make();
  auto first = room.handle(1);
  auto const left = first->which;
  CHECK(left->kept_by() == 2);
  CHECK_FALSE(take(*first, me));
  first.reset();
  CHECK(left->kept_by() == 2);  // by the machine of its name
  auto const later = room.handle(1);
  CHECK_FALSE(take(*later, me));
  CHECK(take(*room.handle(1), me) == errc::bad_argument);
  CHECK(take(*room.handle(2), me) == errc::bad_argument);  // a stranger, whom the owner has the name as
  CHECK_FALSE(give(*later, me));
  CHECK_FALSE(give(*room.handle(1), me));
  CHECK(give(*later, me) == errc::not_owner);
}

TEST_CASE("kind with a parameter: handles are equal as their parameters are") {
  bounded_room const room;
  auto const one = room.handle(1), same = room.handle(1), other = room.handle(2);
  CHECK(one->same_as(*same));
  CHECK_FALSE(one->same_as(*other));
  CHECK_FALSE(one->same_as(single_lock(room.engine, room.name, reentrant_kind())));
  auto const joint = join(room.engine, {one}, false);
  CHECK(join(room.engine, {same}, false) == joint);
  CHECK(join(room.engine, {other}, false) != joint);
  CHECK_THROWS_AS(join(room.engine, {one, same}, true), lock_error);
}
