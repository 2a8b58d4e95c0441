#include <pair/bare_client.hpp>

#include <latchkey/config.hpp>
#include <wire/kind.hpp>
#include <wire/verdict.hpp>

#include <hiredis/hiredis.h>

#include <stdexcept>

namespace bench {
namespace {

using latchkey::detail::ask;
using latchkey::detail::item;
using latchkey::detail::reentrant_kind;
using latchkey::detail::script;
using latchkey::detail::verdict;

struct reply_closer {
  void operator()(redisReply* one) const { freeReplyObject(one); }
};
using reply_ptr = std::unique_ptr<redisReply, reply_closer>;

// As long as the identifier of a client and the number of a thread.
constexpr std::string_view client_id = "00000000-0000-4000-8000-000000000000";
constexpr std::uint64_t owner = 1;

}  // namespace

void bare_client::closer::operator()(redisContext* connection) const { redisFree(connection); }

bare_client::bare_client(std::uint16_t port, std::string name)
    : connection_(redisConnect("127.0.0.1", port)),
      name_(std::move(name)),
      field_(reentrant_kind().field(client_id, owner, 0)) {
  if (!connection_ || connection_->err) throw std::runtime_error("the bare client cannot connect");
  item one{.what = ask::acquire, .name = name_, .field = field_, .target = 1};
  one.lease = latchkey::config{}.lock_watchdog_timeout.count();
  acquire_ = prepare(one);
  one.what = ask::release;
  one.target = one.lease = 0;
  release_ = prepare(one);
}

bare_client::request bare_client::prepare(item const& one) {
  script const& code = reentrant_kind().script_for(one.what);
  reply_ptr const loaded(static_cast<redisReply*>(
      redisCommand(connection_.get(), "SCRIPT LOAD %b", code.text().data(), code.text().size())));
  if (!loaded || loaded->type != REDIS_REPLY_STRING) throw std::runtime_error("the bare client cannot load a script");

  request made;
  made.words.add("EVALSHA");
  made.words.add(code.sha());
  std::size_t const count_at = made.words.size();
  made.words.add("0");
  reentrant_kind().add_keys(one, made.words);
  made.words[count_at] = std::to_string(made.words.size() - count_at - 1);
  reentrant_kind().add_arguments(one, made.words);
  return made;
}

void bare_client::run(request& what, std::int64_t expected) {
  what.text.clear();
  what.size.clear();
  for (auto const& word : what.words.view()) {
    what.text.push_back(word.data());
    what.size.push_back(word.size());
  }
  reply_ptr const answer(static_cast<redisReply*>(
      redisCommandArgv(connection_.get(), static_cast<int>(what.text.size()), what.text.data(), what.size.data())));
  bool const good = answer && answer->type == REDIS_REPLY_ARRAY && answer->elements == 1 &&
                    answer->element[0]->type == REDIS_REPLY_INTEGER && answer->element[0]->integer == expected;
  if (!good) throw std::runtime_error("the bare client got an answer that it did not expect");
}

void bare_client::pair() {
  run(acquire_, static_cast<std::int64_t>(verdict::granted));
  run(release_, static_cast<std::int64_t>(verdict::released));
}

}  // namespace bench
