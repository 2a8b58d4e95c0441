#include "report.hpp"

#include <hiredis/hiredis.h>

#include <stdexcept>

namespace fenced {

namespace {

// Compared and written in one script: nobody comes between.
constexpr char const* guarded_write = R"lua(
if tonumber(redis.call('hget', KEYS[1], 'token') or '0') > tonumber(ARGV[1]) then return 0 end
redis.call('hset', KEYS[1], 'token', ARGV[1], 'text', ARGV[2])
return 1)lua";

struct free_reply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};

template <class... Arguments>
std::unique_ptr<redisReply, free_reply> call(redisContext* context, char const* format, Arguments... arguments) {
  std::unique_ptr<redisReply, free_reply> reply(static_cast<redisReply*>(redisCommand(context, format, arguments...)));
  if (!reply) throw std::runtime_error(context->errstr);
  if (reply->type == REDIS_REPLY_ERROR) throw std::runtime_error(reply->str);
  return reply;
}

}  // namespace

void redis_report::close::operator()(redisContext* context) const { redisFree(context); }

redis_report::redis_report(std::string const& socket_path) : context_(redisConnectUnix(socket_path.c_str())) {
  if (!context_ || context_->err != 0) throw std::runtime_error("cannot connect to " + socket_path);
}

bool redis_report::write(std::uint64_t token, std::string const& text) {
  auto const number = std::to_string(token);
  return call(context_.get(), "EVAL %s 1 report %s %s", guarded_write, number.c_str(), text.c_str())->integer == 1;
}

std::string redis_report::read() {
  auto const reply = call(context_.get(), "HGET report text");
  return reply->type == REDIS_REPLY_STRING ? std::string(reply->str, reply->len) : std::string();
}

}  // namespace fenced
