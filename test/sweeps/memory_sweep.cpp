#include <support/errors.hpp>
#include <sweeps/memory_sweep.hpp>

#include <boost/asio/use_future.hpp>

namespace latchkey::test {

namespace {

// What a caller may hear when memory was short: that, or that the client has ended, or what follows from it.
bool honest(error_code const& error) {
  return error == boost::system::errc::not_enough_memory || error == errc::closed || error == errc::lease_lost ||
         error == errc::not_owner || error == errc::connection_lost || error == errc::connect_failed ||
         error == errc::timeout || error == errc::protocol_error;
}

// It has its strand: Asio is not to be let down while it makes one, since it takes an unfinished one apart.
clients cold_client() {
  auto made = one_client();
  value_of(made[0].get_lock(new_name()).async_is_locked(asio::use_future));
  return made;
}

constexpr long step = slowness > 1 ? 5 : 1;  // sanitizers look at every fifth
constexpr long most = 5'000;

}  // namespace

// True: an allocation failed.
bool memory_sweep::run_once(use const& what, clients const& own, std::string const& name, long n) {
  error_code error;
  bool threw = false;
  failing_memory::fail_anywhere_after(n);
  try {
    what.run(own, name);
  } catch (std::bad_alloc const&) {
    threw = true;
  } catch (boost::system::system_error const& problem) {
    error = problem.code();
  }
  bool const failed = failing_memory::stop();
  if (error) {
    INFO(error.message());
    CHECK(honest(error));
    CHECK(failed);
  }
  if (failed) ++(threw ? thrown : error ? errors : passed);
  return failed;
}

// The next call works, if need be with a new client.
void memory_sweep::use_again(use const& what, clients& own) {
  try {
    return what.run(own, new_name());
  } catch (boost::system::system_error const& problem) {
    INFO(problem.what());
    CHECK(honest(problem.code()));
  }
  CHECK(error_of([&] { return own[0].get_lock(new_name()).try_lock(); }) == errc::closed);
  own = one_client();
  ++ended;
  what.run(own, new_name());
}

void memory_sweep::over(use const& what, bool cold) {
  clients own = one_client();
  what.run(own, new_name());
  std::vector<std::string> names;
  int clean = 0;
  for (long n = 0; clean < 2; n += step) {
    INFO(what.kind << ": " << what.what << ", allocation " << n);
    REQUIRE(n < most);
    if (cold) own = cold_client();
    names.push_back(new_name());
    clean = run_once(what, own, names.back(), n) ? 0 : clean + 1;
    use_again(what, own);
  }
  INFO(what.kind << ": " << what.what);
  own.clear();  // and with it what callers who were thrown out have not released
  CHECK(all_free(what, names));
  // Who ended without memory has left his place in a fair queue, as one who was killed does.
  auto admin = common_server().admin();
  for (auto const& name : names)
    static_cast<void>(
        admin.integer("DEL", "redisson_lock_queue:{" + name + "}", "redisson_lock_timeout:{" + name + "}"));
}

}  // namespace latchkey::test
