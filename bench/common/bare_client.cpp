#include <codec/command_writer.hpp>
#include <common/bare_client.hpp>
#include <common/numbers.hpp>
#include <latchkey/config.hpp>
#include <support/redis_server.hpp>
#include <wire/item.hpp>
#include <wire/kind.hpp>

#include <hiredis/hiredis.h>

#include <fcntl.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

namespace bench {

namespace {

using latchkey::detail::ask;
using latchkey::detail::item;
using latchkey::detail::reentrant_kind;
using latchkey::detail::script;
using latchkey::detail::verdict;
using latchkey::detail::words;

// As long as the identifier of a client and the number of a thread.
constexpr std::string_view client_id = "00000000-0000-4000-8000-000000000000";
constexpr std::uint64_t owner = 1;

command_words words_of(item const& one) {
  words made;
  made.add("EVALSHA");
  made.add(reentrant_kind().script_for(one.what).sha());
  std::size_t const count_at = made.size();
  made.add("0");
  reentrant_kind().add_keys(one, made);
  made[count_at] = std::to_string(made.size() - count_at - 1);
  reentrant_kind().add_arguments(one, made);
  if (reentrant_kind().script_for(one.what).publishes()) made.add(latchkey::detail::publisher(false));
  return {made.view().begin(), made.view().end()};
}

// The number that comes first, in arrays within arrays too.
std::optional<std::int64_t> first_number(redisReply const* answer) {
  while (answer && answer->type == REDIS_REPLY_ARRAY && answer->elements > 0) answer = answer->element[0];
  if (!answer || answer->type != REDIS_REPLY_INTEGER) return std::nullopt;
  return answer->integer;
}

}  // namespace

std::vector<command_words> reentrant_pair(std::string const& name) {
  std::string const field = reentrant_kind().field(client_id, owner, 0);
  item one{.what = ask::acquire, .name = name, .field = field, .target = 1};
  one.lease = latchkey::config{}.lock_watchdog_timeout.count();
  auto acquire = words_of(one);
  one.what = ask::release;
  one.target = one.lease = 0;
  return {std::move(acquire), words_of(one)};
}

void bare_client::closer::operator()(redisContext* connection) const { redisFree(connection); }
void bare_client::closer::operator()(redisReply* one) const { freeReplyObject(one); }

bare_client::bare_client(std::uint16_t port, std::string const& name, waiting how)
    : bare_client(port, reentrant_pair(name), how) {
  requests_[0].expected = static_cast<std::int64_t>(verdict::granted);
  requests_[1].expected = static_cast<std::int64_t>(verdict::released);
  for (auto& one : requests_) one.heard = true;
}

bare_client::bare_client(std::uint16_t port, std::vector<command_words> pair, waiting how)
    : connection_(redisConnect("127.0.0.1", port)), how_(how) {
  if (!connection_ || connection_->err) throw std::runtime_error("the bare client cannot connect");
  load_scripts();
  for (auto& each : pair) {
    request& made = requests_.emplace_back();
    made.words = std::move(each);
    for (auto const& word : made.words) {
      made.text.push_back(word.data());
      made.size.push_back(word.size());
    }
  }
  if (how_ == waiting::sleeps) return;
  ::fcntl(connection_->fd, F_SETFL, ::fcntl(connection_->fd, F_GETFL) | O_NONBLOCK);
  connection_->flags &= ~REDIS_BLOCK;
}

void bare_client::load_scripts() {
  for (auto const what : {ask::acquire, ask::release}) {
    script const& code = reentrant_kind().script_for(what);
    reply_ptr const loaded(static_cast<redisReply*>(
        redisCommand(connection_.get(), "SCRIPT LOAD %b", code.text().data(), code.text().size())));
    if (!loaded || loaded->type != REDIS_REPLY_STRING) throw std::runtime_error("the bare client cannot load a script");
  }
}

void bare_client::ask(std::size_t which) {
  request& what = requests_[which];
  redisAppendCommandArgv(connection_.get(), static_cast<int>(what.text.size()), what.text.data(), what.size.data());
  int done = 0;
  while (done == 0)
    if (redisBufferWrite(connection_.get(), &done) != REDIS_OK) return;  // hear() says it
}

void bare_client::hear(std::size_t which) { check(requests_[which], receive()); }

bare_client::reply_ptr bare_client::receive() {
  void* answer = nullptr;
  if (how_ == waiting::sleeps) {
    redisGetReply(connection_.get(), &answer);
  } else {
    while (!answer && redisBufferRead(connection_.get()) == REDIS_OK &&
           redisGetReplyFromReader(connection_.get(), &answer) == REDIS_OK) {
    }
  }
  return reply_ptr(static_cast<redisReply*>(answer));
}

void bare_client::run(request& what) {
  check(what, reply_ptr(static_cast<redisReply*>(redisCommandArgv(connection_.get(), static_cast<int>(what.text.size()),
                                                                  what.text.data(), what.size.data()))));
}

void bare_client::check(request& what, reply_ptr const& answer) const {
  auto const number = first_number(answer.get());
  if (!std::exchange(what.heard, true)) what.expected = number;
  if (!answer || answer->type == REDIS_REPLY_ERROR || number != what.expected)
    throw std::runtime_error("the bare client got an answer that it did not expect");
}

void bare_client::pair() {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (how_ == waiting::sleeps) {
      run(requests_[i]);
    } else {
      ask(i);
      hear(i);
    }
  }
}

namespace {

char unhex(char c) { return static_cast<char>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10); }

// One word of a line of MONITOR, without its quotes.
std::string word_at(std::string_view line, std::size_t& at) {
  std::string word;
  for (++at; at < line.size() && line[at] != '"'; ++at) {
    if (line[at] != '\\') {
      word += line[at];
      continue;
    }
    char const what = line[++at];
    if (what == 'x') {
      word += static_cast<char>(unhex(line[at + 1]) * 16 + unhex(line[at + 2]));
      at += 2;
    } else {
      word += what == 'n'   ? '\n'
              : what == 'r' ? '\r'
              : what == 't' ? '\t'
              : what == 'a' ? '\a'
              : what == 'b' ? '\b'
                            : what;
    }
  }
  return word;
}

command_words words_of_line(std::string_view line) {
  command_words words;
  for (auto at = line.find('"'); at != line.npos; at = line.find('"', at + 1)) words.push_back(word_at(line, at));
  return words;
}

}  // namespace

std::vector<std::vector<command_words>> record(std::vector<latchkey::test::redis_server const*> const& servers,
                                               std::function<void()> const& what) {
  std::vector<std::unique_ptr<latchkey::test::command_counter>> ears;
  // What nobody waits for, as the end of a red lock's release, comes a little later.
  auto const calm = [] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); };
  calm();
  for (auto const* server : servers) ears.push_back(std::make_unique<latchkey::test::command_counter>(*server));
  what();
  calm();
  std::vector<std::vector<command_words>> heard;
  for (auto const& ear : ears) {
    auto& calls = heard.emplace_back();
    for (auto const& line : ear->take_lines())
      if (auto words = words_of_line(line); !words.empty() && words[0] == "EVALSHA") calls.push_back(std::move(words));
  }
  return heard;
}

namespace {

constexpr int locks_of_a_chunk = 50;

void append(std::string& bytes, command_words const& words) {
  bytes += '*' + std::to_string(words.size()) + "\r\n";
  for (auto const& word : words) bytes += '$' + std::to_string(word.size()) + "\r\n" + word + "\r\n";
}

}  // namespace

pipeline::pipeline(std::uint16_t port, std::string const& prefix, int locks, int under_way)
    : connection_(redisConnect("127.0.0.1", port), redisFree), chunks_under_way_(under_way / locks_of_a_chunk) {
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
  for (int i = 0; i < chunks_under_way_; ++i) send_chunk();
  std::int64_t const began = now();
  std::int64_t const end = began + static_cast<std::int64_t>(seconds * 1e9);
  long chunks = 0;
  for (; now() < end; ++chunks) {
    receive_chunk();
    send_chunk();
  }
  double const took = static_cast<double>(now() - began) * 1e-9;
  for (int i = 0; i < chunks_under_way_; ++i) receive_chunk();
  return static_cast<double>(chunks * locks_of_a_chunk) / took;
}

}  // namespace bench
