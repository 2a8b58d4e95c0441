#include <common/pipeline.hpp>

#include <common/bare_client.hpp>
#include <common/clocks.hpp>

#include <hiredis/hiredis.h>

#include <stdexcept>

namespace bench {
namespace {

constexpr int locks_of_a_chunk = 50;
constexpr int chunks_under_way = 8;

void append(std::string& bytes, command_words const& words) {
  bytes += '*' + std::to_string(words.size()) + "\r\n";
  for (auto const& word : words) bytes += '$' + std::to_string(word.size()) + "\r\n" + word + "\r\n";
}

}  // namespace

pipeline::pipeline(std::uint16_t port, std::string const& prefix, int locks)
    : connection_(redisConnect("127.0.0.1", port), redisFree) {
  if (!connection_ || connection_->err) throw std::runtime_error("the pipeline cannot connect");
  bare_client(port, prefix).pair();  // the server knows the scripts from now on
  for (int first = 0; first < locks; first += locks_of_a_chunk) {
    std::string acquires, releases;
    for (int i = first; i < first + locks_of_a_chunk; ++i) {
      auto const pair = reentrant_pair(prefix + std::to_string(i));
      append(acquires, pair[0]);
      append(releases, pair[1]);
    }
    chunks_.push_back(acquires + releases);
  }
}

pipeline::~pipeline() = default;

void pipeline::send_chunk() {
  auto const& bytes = chunks_[next_++ % chunks_.size()];
  redisAppendFormattedCommand(connection_.get(), bytes.data(), bytes.size());
  int done = 0;
  while (done == 0)
    if (redisBufferWrite(connection_.get(), &done) != REDIS_OK) throw std::runtime_error("the pipeline broke");
}

void pipeline::receive_chunk() {
  for (int i = 0; i < 2 * locks_of_a_chunk; ++i) {
    void* answer = nullptr;
    if (redisGetReply(connection_.get(), &answer) != REDIS_OK) throw std::runtime_error("the pipeline broke");
    auto* const reply = static_cast<redisReply*>(answer);
    bool const good = reply->type == REDIS_REPLY_ARRAY && reply->elements == 1 &&
                      reply->element[0]->type == REDIS_REPLY_INTEGER && reply->element[0]->integer < -2;
    freeReplyObject(reply);
    if (!good) throw std::runtime_error("the pipeline got an answer that it did not expect");
  }
}

double pipeline::pairs_per_second(double seconds) {
  for (int i = 0; i < chunks_under_way; ++i) send_chunk();
  std::int64_t const began = now();
  std::int64_t const end = began + static_cast<std::int64_t>(seconds * 1e9);
  long chunks = 0;
  for (; now() < end; ++chunks) {
    receive_chunk();
    send_chunk();
  }
  double const took = static_cast<double>(now() - began) * 1e-9;
  for (int i = 0; i < chunks_under_way; ++i) receive_chunk();
  return static_cast<double>(chunks * locks_of_a_chunk) / took;
}

}  // namespace bench
