#include "redis.hpp"

#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <stdexcept>

namespace demo {
namespace {

// Far above what a flooded server needs, so that it only ends what would hang.
constexpr timeval answer_limit{10, 0};

constexpr char const* compare_and_delete_script =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

std::string text_of(redisReply const& reply) { return {reply.str, static_cast<std::size_t>(reply.len)}; }

}  // namespace

void redis::free_context::operator()(redisContext* context) const { redisFree(context); }
void redis::free_reply::operator()(redisReply* reply) const { freeReplyObject(reply); }

redis::redis(std::string const& socket_path) : context_(redisConnectUnix(socket_path.c_str())) {
  if (!context_) throw std::runtime_error("out of memory");
  if (context_->err) throw std::runtime_error(std::string("cannot connect to redis-server: ") + context_->errstr);
  redisSetTimeout(context_.get(), answer_limit);
}

redis::~redis() = default;
redis::redis(redis&&) noexcept = default;
redis& redis::operator=(redis&&) noexcept = default;

template <class... Arguments>
redis::reply_ptr redis::ask(char const* format, Arguments... arguments) {
  reply_ptr reply(static_cast<redisReply*>(redisCommand(context_.get(), format, arguments...)));
  if (!reply) throw std::runtime_error(std::string("no answer from redis-server: ") + context_->errstr);
  return reply;
}

template <class... Arguments>
redis::reply_ptr redis::call(char const* format, Arguments... arguments) {
  auto reply = ask(format, arguments...);
  if (reply->type == REDIS_REPLY_ERROR) throw std::runtime_error("redis-server: " + text_of(*reply));
  return reply;
}

long long redis::get_number(char const* key) {
  auto const reply = call("GET %s", key);
  if (reply->type != REDIS_REPLY_STRING) throw std::runtime_error(std::string(key) + " is not there");
  return std::stoll(text_of(*reply));
}

void redis::set_number(char const* key, long long value) { call("SET %s %lld", key, value); }

bool redis::set_if_absent(char const* key, std::string const& token, std::chrono::milliseconds lease) {
  return call("SET %s %s NX PX %lld", key, token.c_str(), static_cast<long long>(lease.count()))->type ==
         REDIS_REPLY_STATUS;
}

bool redis::compare_and_delete(char const* key, std::string const& token) {
  return call("EVAL %s 1 %s %s", compare_and_delete_script, key, token.c_str())->integer == 1;
}

bool redis::serves(char const* key) {
  auto const reply = ask("EXISTS %s", key);
  if (reply->type != REDIS_REPLY_ERROR) return true;
  if (text_of(*reply).starts_with("MOVED ")) return false;
  throw std::runtime_error("redis-server: " + text_of(*reply));
}

std::string redis::replication() { return text_of(*call("INFO replication")); }

bool redis::knows_every_slot() { return text_of(*call("CLUSTER INFO")).find("cluster_state:ok") != std::string::npos; }

void redis::flush() { call("FLUSHALL"); }
void redis::reset_statistics() { call("CONFIG RESETSTAT"); }

std::string redis::command_statistics() {
  auto const reply = call("INFO commandstats");
  return text_of(*reply);
}

}  // namespace demo
