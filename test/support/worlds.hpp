#pragma once

#include <latchkey/client.hpp>
#include <latchkey/permit_semaphore.hpp>
#include <latchkey/read_write_lock.hpp>
#include <support/configs.hpp>
#include <support/errors.hpp>
#include <support/redis_server.hpp>
#include <support/redisson_fair.hpp>

#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace latchkey::test {

using fields = std::map<std::string, std::string>;  // of a hash

// A client of the common server, its events, a look at the server, and a lock that nobody has used before.
struct common_world {
  event_log log;
  raw_redis admin = common_server().admin();
  client own{common_server().uri(), steady_config(log)};
  std::string name = new_name();
  distributed_lock lock = own.get_lock(name);

  std::string field(owner who) const { return own.id() + ":" + to_string(who); }
};

// The same with a server of its own, for tests that change settings of the server or break it.
struct private_world {
  explicit private_world(config settings = steady_config(), redis_options options = {})
      : server(std::move(options)), admin(server.admin()), own(server.uri(), heard_by(log, std::move(settings))) {}

  std::string field(owner who) const { return own.id() + ":" + to_string(who); }

  event_log log;
  redis_server server;
  raw_redis admin;
  client own;
  std::string name = "lock";
  distributed_lock lock = own.get_lock(name);
};

// What locking costs: clients of this server come by TCP, so that the counter tells them from the test itself.
struct counted_world : private_world {
  explicit counted_world(config settings = unpinged_config()) : private_world(std::move(settings), {.tcp = true}) {}

  command_counter counter{server};

  // Connected on both lanes, and the server knows the scripts: from then on nothing is sent but what a call needs.
  bool warmed_up(std::vector<distributed_lock> const& ways) {
    auto const pair = [&] {
      for (auto const& way : ways) {
        way.lock();
        way.unlock();
        value_of(way.async_acquire(boost::asio::use_future)).release();
      }
      return counter.take() == std::map<std::string, int>{{"EVALSHA", 4 * static_cast<int>(ways.size())}};
    };
    return wait_until([&] { return pair() && pair() && pair(); });
  }
};

inline config as_user(std::string name, std::string password) {
  auto settings = steady_config();
  settings.username = std::move(name);
  settings.password = std::move(password);
  settings.retry_attempts = 1;
  settings.retry_delay = 20ms;
  return settings;
}

// A server with a user `till`, who may do everything but what the rules take away, and a client of that user.
struct limited_world {
  template <class... Rules>
  explicit limited_world(Rules const&... rules) {
    admin.ok("ACL", "SETUSER", "till", "on", ">s3cret", "~*", "&*", "+@all", rules...);
    own.emplace(server.uri(), heard_by(log, as_user("till", "s3cret")));
    lock = own->get_lock(name);
  }
  event_log log;
  redis_server server;
  raw_redis admin = server.admin();
  std::string name = "lock";
  std::optional<client> own;
  std::optional<distributed_lock> lock;
};

// The common server with a fair lock that nobody has used before, and a look at its queue.
struct fair_world : common_world {
  distributed_lock fair = own.get_fair_lock(name);

  std::string const queue = "redisson_lock_queue:{" + name + "}";
  std::string const scores = "redisson_lock_timeout:{" + name + "}";
  std::string const channel = "redisson_lock__channel:{" + name + "}";

  // Who waits, in order.
  std::vector<std::string> line() {
    std::vector<std::string> found;
    for (auto const& one : admin.ok("LRANGE", queue, 0, -1).elements) found.push_back(one.text);
    return found;
  }
  // When this waiter counts as dead, by the server's clock; 0: it has no score.
  std::int64_t score(std::string_view waiter) {
    auto const text = admin.text("ZSCORE", scores, waiter);
    return text.empty() ? 0 : std::stoll(text);
  }
  std::int64_t score(owner who) { return score(field(who)); }
  std::int64_t now() { return admin.now_ms(); }
  // Puts somebody at the end of the queue who will never say a word.
  void enter(std::string_view waiter, std::chrono::milliseconds alive) {
    admin.ok("RPUSH", queue, waiter);
    admin.ok("ZADD", scores, now() + alive.count(), waiter);
  }
  // The waiter stands in the queue and hears its channel: it tries no more until it is told, or looks again.
  bool listening(std::string const& waiter) {
    return wait_until([&] { return admin.listeners_at(channel + ":" + waiter) == 1 && score(waiter) != 0; });
  }
  bool listening(owner who) { return listening(field(who)); }
  bool nothing_left() {
    return wait_until([&] { return admin.integer("EXISTS", name, queue, scores) == 0; });
  }
};

// The score of a permit without a lease.
inline constexpr auto score_of_no_lease = "922337203685477";

inline std::string hex_of(std::string const& bytes) {
  std::string made;
  for (char const c : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    made += digits;
  }
  return made;
}

// A semaphore of permits with ids that nobody has used before, and what the server has of it.
struct permit_world : common_world {
  permit_semaphore permits = own.get_permit_semaphore(name);
  std::string timeouts = "{" + name + "}:timeout";
  std::string channel = "redisson_sc:{" + name + "}";

  std::string free() { return admin.text("GET", name); }
  // Ids as users see them, with their scores.
  std::map<std::string, std::string> taken() {
    std::map<std::string, std::string> made;
    auto const words = admin.ok("ZRANGE", timeouts, "0", "-1", "WITHSCORES").elements;
    for (std::size_t i = 0; i + 1 < words.size(); i += 2) made[hex_of(words[i].text)] = words[i + 1].text;
    return made;
  }
};

// Two clients of the common server and both sides of one read/write lock.
struct rw_world : common_world {
  read_write_lock rw = own.get_read_write_lock(name);
  distributed_lock reads = rw.read_lock(), writes = rw.write_lock();
  client other{common_server().uri(), steady_config()};
  distributed_lock their_reads = other.get_read_write_lock(name).read_lock();
  distributed_lock their_writes = other.get_read_write_lock(name).write_lock();
  owner me = owner::this_thread();

  // The key of a read hold of this client.
  std::string stamp(owner who, int number) const {
    return "{" + name + "}:" + field(who) + ":rwlock_timeout:" + std::to_string(number);
  }
  std::int64_t ttl(std::string const& key) { return admin.integer("PTTL", key); }
  std::int64_t listeners() { return admin.listeners_at("redisson_rwlock:{" + name + "}"); }
  redisson_read_write redisson(int thread = 57) const { return {common_server(), name, thread}; }
};

// Is the time to live about what was asked for, on a machine that may be slow?
inline bool about(std::int64_t ttl, std::chrono::milliseconds lease) {
  return ttl <= lease.count() && ttl > lease.count() - std::chrono::milliseconds(5s * slowness).count();
}

// Three locks of one client, joined.
struct trio : common_world {
  std::vector<std::string> names{new_name(), new_name(), new_name()};
  std::vector<distributed_lock> members{own.get_lock(names[0]), own.get_lock(names[1]), own.get_lock(names[2])};
  distributed_lock all = own.get_multi_lock(members);
  client other{common_server().uri(), steady_config()};

  int keys() { return static_cast<int>(admin.integer("EXISTS", names[0], names[1], names[2])); }
  bool held_by(owner who) {
    std::map<std::string, std::string> const once{{field(who), "1"}};
    return std::all_of(names.begin(), names.end(), [&](auto const& one) { return admin.hash(one) == once; });
  }
};

}  // namespace latchkey::test
