#include <latchkey/testing/server.hpp>

#include <api/inspection.hpp>
#include <base/clock.hpp>
#include <engine/private_folder.hpp>
#include <engine/test_clock.hpp>
#include <host.hpp>

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <stdexcept>
#include <string>

namespace latchkey::testing {

namespace {

using detail::test_clock;

// Of all servers together: the clock of the process counts nanoseconds in 64 bits.
constexpr std::chrono::hours longest_advance{24 * 365 * 100};
constexpr std::int64_t lease_of_others = 30'000;

std::string checked(std::string_view command) {
  if (!model::server::is_known(command))
    throw std::invalid_argument("latchkey::testing: there is no command " + std::string(command));
  return model::lower(command);
}

using keyspace = model::keyspace;

// As one who takes the lock for the first time.
void give_to_other(model::server& redis, std::string const& name) {
  std::string const other = std::string(server::other_holder) + ":1";
  keyspace::value const* const there = redis.data.find(name);
  auto const* const hash = there ? std::get_if<keyspace::hash_value>(&there->holds) : nullptr;
  bool const plain = there && std::holds_alternative<keyspace::text_value>(there->holds);
  bool const sides =
      hash && std::any_of(hash->begin(), hash->end(), [](auto const& one) { return one.first == "mode"; });
  keyspace::hash_value fields;
  if (sides) fields.emplace_back("mode", "write");
  fields.emplace_back(sides ? other + ":write" : other, "1");
  auto& made = plain ? redis.data.make(name, other) : redis.data.make(name, std::move(fields));
  made.ends = redis.data.now + lease_of_others;
  std::string const token = "redisson_lock_token:{" + name + "}";
  if (redis.data.find(token)) redis.execute(std::vector<std::string>{"incr", token});
}

int count_of(std::string_view text) {
  int made = 0;
  std::from_chars(text.data(), text.data() + text.size(), made);
  return made;
}

}  // namespace

struct server::impl {
  impl() : uri("unix://" + socket()), redis(socket()) { test_clock::begin(); }
  ~impl() { folder.remove(); }

  std::string socket() const { return folder.path() + "/redis.sock"; }
  void settle() {
    if (!redis.ask([this] { return redis.frozen(); })) test_clock::settle(socket());
  }
  void doubt_holds() {
    test_clock::doubt_holds(socket());
    settle();
  }

  detail::private_folder folder;
  std::string uri;
  host redis;
  pid_t const maker = ::getpid();
};

server::server() : impl_(std::make_unique<impl>()) {}

server::~server() {
  // The child of a fork has neither the thread nor the right to the folder.
  if (::getpid() != impl_->maker) static_cast<void>(impl_.release());
}

std::string const& server::uri() const noexcept { return impl_->uri; }

void server::advance(timespan by) {
  auto const length = milliseconds(by);
  impl_->settle();
  impl_->redis.ask([&] {
    auto const before = std::chrono::duration_cast<milliseconds>(detail::clock_ahead());
    if (length < milliseconds::zero()) throw std::invalid_argument("latchkey::testing: time does not go back");
    if (length > longest_advance - before)
      throw std::invalid_argument("latchkey::testing: more than a hundred years in all");
    impl_->redis.advance(length);
    test_clock::advance(length);
  });
  impl_->settle();
}

void server::real_time() {
  impl_->redis.ask([&] { impl_->redis.real_time(); });
}

bool server::lose(std::string_view name) {
  std::string const key(name);
  impl_->settle();
  bool const there = impl_->redis.ask([&] { return impl_->redis.redis().data.remove(key); });
  impl_->doubt_holds();
  return there;
}

void server::take(std::string_view name) {
  std::string const key(name);
  impl_->settle();
  impl_->redis.ask([&] { give_to_other(impl_->redis.redis(), key); });
  impl_->doubt_holds();
}

void server::cut() {
  impl_->redis.ask([&] { impl_->redis.cut(); });
}

void server::freeze() {
  impl_->redis.ask([&] { impl_->redis.freeze(); });
}

void server::thaw() {
  impl_->redis.ask([&] { impl_->redis.thaw(); });
}

void server::fail_next(std::string_view command, std::string_view words, int times) {
  std::string const name = checked(command);
  if (words.empty() || words.find_first_of("\r\n") != std::string_view::npos)
    throw std::invalid_argument("latchkey::testing: an error is one line");
  if (times < 1) throw std::invalid_argument("latchkey::testing: less than one time");
  impl_->redis.ask([&] { impl_->redis.redis().fail(name, words, times); });
}

void server::deny(std::string_view command) {
  std::string name = checked(command);
  impl_->redis.ask([&] { impl_->redis.redis().denied.insert(std::move(name)); });
}

void server::allow(std::string_view command) {
  std::string const name = checked(command);
  impl_->redis.ask([&] { impl_->redis.redis().denied.erase(name); });
}

void server::restart(bool keep_data) {
  impl_->redis.ask([&] { impl_->redis.redis().restart(keep_data); });
}

void server::mute(bool on) {
  impl_->redis.ask([&] { impl_->redis.redis().mute = on; });
}

std::vector<holder> server::holders(std::string_view name) const {
  std::vector<holder> made;
  std::string const key(name);
  impl_->redis.ask([&] {
    auto& redis = impl_->redis.redis();
    std::string const clients = redis.clients();
    keyspace::value const* const there = redis.data.find(key);
    if (!there) return;
    if (auto const* const value = std::get_if<keyspace::text_value>(&there->holds)) {
      made.push_back(detail::holder_of(*value));
      made.back().count = 1;
    } else if (auto const* const fields = std::get_if<keyspace::hash_value>(&there->holds)) {
      for (auto const& [field, count] : *fields) {
        if (field == "mode") continue;  // of a read-write lock: which side
        made.push_back(detail::holder_of(field));
        made.back().count = count_of(count);
      }
    }
    for (std::string_view rest = clients; !rest.empty();) {
      auto const line = rest.substr(0, rest.find('\n'));
      for (auto& one : made)
        if (!one.from) one.from = detail::connection_of(line, one.client_id);
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    }
  });
  return made;
}

std::vector<std::string> server::commands() const {
  return impl_->redis.ask([&] { return impl_->redis.log(); });
}

}  // namespace latchkey::testing
