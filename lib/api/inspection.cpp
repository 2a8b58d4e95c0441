#include <api/async_call.hpp>
#include <api/inspection.hpp>
#include <latchkey/client.hpp>
#include <wire/packed.hpp>

#include <algorithm>
#include <charconv>

namespace latchkey::detail {

namespace {

template <class Number>
Number number_of(std::string_view text) {
  Number made = 0;
  std::from_chars(text.data(), text.data() + text.size(), made);
  return made;
}

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// What stands behind `key=`, which is a word of its own.
std::string_view word_of(std::string_view line, std::string_view key) {
  while (!line.empty()) {
    auto const word = line.substr(0, line.find(' '));
    if (word.size() > key.size() && word.starts_with(key) && word[key.size()] == '=')
      return word.substr(key.size() + 1);
    line.remove_prefix(std::min(word.size() + 1, line.size()));
  }
  return {};
}

// Of an answer to INFO.
std::size_t connected_clients(std::string_view text) {
  constexpr std::string_view key = "connected_clients:";
  auto const at = text.find(key);
  return at == std::string_view::npos ? 0 : number_of<std::size_t>(text.substr(at + key.size()));
}

// A line has some 350 bytes, and an answer at most a MiB.
constexpr std::size_t most_connections = 2'000;

bool refused(operation const& call) { return call.error == errc::server_error || call.error == errc::auth_failed; }

}  // namespace

std::optional<query> inspection::next() const {
  switch (step_) {
    case 0: return query::holders;
    case 1: return query::time_to_live;
    case 2: return key_->which->rules().own_channel ? query::line : query::listeners;
    case 3: return made_.holders.empty() ? std::nullopt : std::optional(query::clients);
    case 4: return few_ ? std::optional(query::connections) : std::nullopt;
    default: return std::nullopt;
  }
}

bool inspection::take(operation const& call) {
  auto const asked = call.question;
  ++step_;
  bool const needed = asked == query::holders || asked == query::time_to_live || asked == query::line;
  if (call.error) return refused(call) && !needed;
  if (asked == query::time_to_live) {
    made_.remaining = answer_as<std::optional<milliseconds>>(call.value);
    return true;
  }
  std::string_view const text = call.argument ? std::string_view(*call.argument) : std::string_view();
  if (asked == query::holders) {
    read_holders(text);
  } else if (asked == query::line) {
    made_.line = unpacked(text);
    made_.listeners = static_cast<std::int64_t>(made_.line.size());
  } else if (auto const words = unpacked(text); asked == query::listeners && words.size() == 2) {
    made_.listeners = number_of<std::int64_t>(words[1]);
  } else if (asked == query::clients && words.size() == 1) {
    few_ = connected_clients(words[0]) <= most_connections;
  } else if (asked == query::connections && words.size() == 1) {
    read_connections(words[0]);
  }
  return true;
}

// Pairs of a hash, or the one value of a plain lock.
void inspection::read_holders(std::string_view text) {
  auto const words = unpacked(text);
  if (words.size() == 1) {
    made_.holders.push_back(holder_of(words[0]));
    made_.holders.back().count = 1;
  }
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    if (words[i] == "mode") continue;  // of a read-write lock: reading or writing, and no holder
    made_.holders.push_back(holder_of(words[i]));
    made_.holders.back().count = number_of<int>(words[i + 1]);
  }
}

void inspection::read_connections(std::string_view list) {
  while (!list.empty()) {
    auto const line = list.substr(0, list.find('\n'));
    for (auto& holder : made_.holders)
      if (!holder.from) holder.from = connection_of(line, holder.client_id);
    list.remove_prefix(std::min(line.size() + 1, list.size()));
  }
}

holder holder_of(std::string_view field) {
  holder made;
  constexpr std::string_view writer = ":write";
  made.writes = field.ends_with(writer);
  if (made.writes) field.remove_suffix(writer.size());
  auto const colon = field.rfind(':');
  bool const ours = colon != std::string_view::npos && all_digits(field.substr(colon + 1));
  made.client_id = field.substr(0, ours ? colon : field.size());
  if (ours) made.owner = field.substr(colon + 1);
  return made;
}

std::optional<connection_info> connection_of(std::string_view line, std::string_view client_id) {
  auto name = word_of(line, "name");
  if (client_id.empty() || name.find(client_id) == std::string_view::npos) return std::nullopt;
  connection_info made;
  made.name = name;
  made.address = word_of(line, "addr");
  std::string const announced = "latchkey:" + std::string(client_id) + ':';
  if (!name.starts_with(announced)) return made;
  name.remove_prefix(announced.size());
  auto const at = name.find('@');
  auto const colon = name.find(':', at);
  if (at == std::string_view::npos || colon == std::string_view::npos || !all_digits(name.substr(0, at))) return made;
  made.pid = number_of<int>(name.substr(0, at));
  made.host = name.substr(at + 1, colon - at - 1);
  made.program = name.substr(colon + 1);
  return made;
}

}  // namespace latchkey::detail

namespace latchkey {

namespace {

using detail::inspection;
using done_handler = detail::handler<void(error_code, lock_state)>;

// Asks one question after the other, and then calls its handler.
class async_inspection : public std::enable_shared_from_this<async_inspection> {
 public:
  async_inspection(std::shared_ptr<detail::lock_key const> const& key, done_handler done)
      : what_(key),
        key_(key),
        fallback_(executor_of(*key)),
        where_(asio::prefer(asio::get_associated_executor(done, fallback_), asio::execution::outstanding_work.tracked)),
        done_(std::move(done)) {}

  void next() {
    auto const question = what_.next();
    if (!question) return finish({});
    auto const take = [self = shared_from_this()](detail::operation const& call) {
      return std::tuple(self->what_.take(call) ? error_code() : call.error);
    };
    detail::handler<void(error_code)> then(
        [self = shared_from_this()](error_code const& failed) { failed ? self->finish(failed) : self->next(); });
    start_call(key_, std::move(then), take, detail::fill_query, *question, std::nullopt);
  }

 private:
  void finish(error_code const& failed) {
    lock_state found;
    if (!failed) found = std::move(what_).result();
    asio::post(fallback_, asio::bind_executor(where_, [done = std::move(done_), failed, found]() mutable {
                 std::move(done)(failed, std::move(found));
               }));
  }

  inspection what_;
  std::shared_ptr<detail::lock_key const> key_;
  asio::any_io_executor fallback_;
  asio::any_completion_executor where_;
  done_handler done_;
};

}  // namespace

lock_state client::inspect(distributed_lock const& lock) const {
  detail::check_blocking(*lock.key_);
  inspection what(lock.key_);
  while (auto const question = what.next()) {
    detail::blocking_call call;
    throw_if(fill_query(call, *lock.key_, *question, std::nullopt));
    lock.key_->run(call);
    if (!what.take(call)) throw_if(call);
  }
  return std::move(what).result();
}

void client::start_inspect(std::shared_ptr<detail::lock_key const> const& key, done_handler done) {
  std::make_shared<async_inspection>(key, std::move(done))->next();
}

}  // namespace latchkey
