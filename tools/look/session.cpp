#include <hiredis/hiredis.h>
#include <latchkey/latchkey.hpp>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <base/exit_code.hpp>
#include <base/say.hpp>
#include <boost/algorithm/string/replace.hpp>
#include <cerrno>
#include <look/place.hpp>
#include <look/session.hpp>
#include <look/tls.hpp>
#include <look/topology.hpp>

namespace latchkey::tool {
namespace {

// A server that has closed the connection is an error of this call, and not the end of the program by SIGPIPE, which is
// meant for standard output.
class without_sigpipe {
 public:
  without_sigpipe() {
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  without_sigpipe(without_sigpipe const&) = delete;
  without_sigpipe& operator=(without_sigpipe const&) = delete;
  ~without_sigpipe() {
    timespec const at_once{};
    if (!was_pending_) ::sigtimedwait(&pipe_, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_, before_;
  bool was_pending_ = false;
};

answer read(redisReply const& from) {
  using type = answer::type;
  answer made;
  if (from.type == REDIS_REPLY_INTEGER) {
    made.what = type::number;
    made.number = from.integer;
  } else if (from.type == REDIS_REPLY_ARRAY) {
    made.what = type::list;
    for (std::size_t i = 0; i < from.elements; ++i) made.list.push_back(read(*from.element[i]));
  } else if (from.type != REDIS_REPLY_NIL) {
    made.what = from.type == REDIS_REPLY_ERROR ? type::error : type::text;
    made.text.assign(from.str, from.len);
  }
  return made;
}

}  // namespace

// In a cluster: the slot of the name may be elsewhere by now, or its node another.
bool session::moved(std::string_view words) const {
  auto const begins = [&](std::string_view code) { return words.starts_with(code); };
  return in_cluster_ && (begins("MOVED ") || begins("ASK ") || begins("READONLY "));
}

void session::refuse(std::string const& words) const {
  auto const text = "the server at " + quoted(where_) + " refuses: " + without_password(words);
  if (words.starts_with("NOPERM")) throw right_missing(no_permission, text);
  bool const user = words.starts_with("WRONGPASS") || words.starts_with("NOAUTH") || words.starts_with("ERR AUTH") ||
                    words.starts_with("ERR invalid password");
  if (user) throw failure(no_permission, text);
  if (lock_error(make_error_code(errc::server_error), words).transient()) throw refused_for_now(unavailable, text);
  if (moved(words)) throw refused_for_now(refused, text);
  throw failure(refused, text);
}

// A server that does not know AUTH repeats its arguments, cut and with blanks for some characters; what is no Redis
// server may repeat what it was sent, between quotes.
std::string session::without_password(std::string words) const {
  words.resize(std::min(words.size(), words.find(", with args beginning with")));
  if (password_.empty()) return words;
  for (char const quote : {'\'', '`', '"'})
    boost::algorithm::replace_all(words, quote + password_ + quote, std::string{quote, '*', '*', '*', quote});
  return words;
}

session::session(connection const& to, std::string const& name) : session(to, place_of(to, name)) {}

session::session(connection const& to, place const& where) : in_cluster_(!where.nodes.empty()) { open(to, where); }

void session::open(connection const& to, place const& where) {
  try {
    connect(to, where);
  } catch (...) {
    ::redisFree(socket_);
    throw;
  }
}

session::~session() { ::redisFree(socket_); }

void session::connect(connection const& to, place const& where) {
  without_sigpipe const guard;
  patience_ = to.settings.connect_timeout;
  timeval const patience{patience_.count() / 1'000, patience_.count() % 1'000 * 1'000};
  where_ = where.socket.empty() ? where.host + ':' + std::to_string(where.port) : where.socket;
  socket_ = where.socket.empty() ? ::redisConnectWithTimeout(where.host.c_str(), where.port, patience)
                                 : ::redisConnectUnixWithTimeout(where.socket.c_str(), patience);
  if (!socket_ || socket_->err) lost();
  ::redisSetTimeout(socket_, patience);
  if (to.by_tls) tls_ = std::make_unique<tls_channel>(socket_->fd, to.settings.tls, where.host, where_);
  password_ = where.password;
  // A user without a password is refused, and not taken for the default user.
  if (!where.user.empty() || !where.password.empty())
    ask(where.user.empty() ? command{"AUTH", where.password} : command{"AUTH", where.user, where.password});
  if (!where.database.empty() && where.database != "0") ask({"SELECT", where.database});
}

void session::lost() const {
  int const system = errno;
  if (!socket_) throw failure(internal_error, "no memory");
  auto why = std::string(socket_->errstr);
  bool const failed = socket_->err == REDIS_ERR_IO;
  if (failed && (system == EAGAIN || system == ETIMEDOUT)) why = "no answer in " + in_words(patience_);
  // An alert of TLS, or an end before the first word.
  bool const refused = socket_->err == REDIS_ERR_PROTOCOL || socket_->err == REDIS_ERR_EOF || system == ECONNRESET;
  if (refused && !heard_ && !tls_ && socket_->connection_type == REDIS_CONN_TCP) why += " (a port for TLS? rediss://)";
  throw failure(unavailable, "cannot use the server at " + quoted(where_) + ": " + why);
}

void session::strange() const { throw failure(refused, "what answers at " + quoted(where_) + " is no Redis server"); }

void session::send(command const& words) {
  without_sigpipe const guard;
  std::vector<char const*> starts;
  std::vector<std::size_t> lengths;
  for (auto const& word : words) {
    starts.push_back(word.data());
    lengths.push_back(word.size());
  }
  if (tls_) {
    char* bytes = nullptr;
    int const size = ::redisFormatCommandArgv(&bytes, static_cast<int>(words.size()), starts.data(), lengths.data());
    std::unique_ptr<char, void (*)(char*)> const owned(bytes, ::redisFreeCommand);
    if (size < 0) throw failure(internal_error, "no memory");
    return tls_->write({bytes, static_cast<std::size_t>(size)});
  }
  ::redisAppendCommandArgv(socket_, static_cast<int>(words.size()), starts.data(), lengths.data());
  int done = 0;
  while (!done)
    if (::redisBufferWrite(socket_, &done) != REDIS_OK) lost();
}

void* session::received() {
  void* reply = nullptr;
  if (::redisGetReplyFromReader(socket_, &reply) != REDIS_OK) lost();
  return reply;
}

answer session::next() {
  without_sigpipe const guard;  // reading may have to write, by TLS
  void* reply = nullptr;
  if (!tls_ && ::redisGetReply(socket_, &reply) != REDIS_OK) lost();
  while (tls_ && (reply = received()) == nullptr) {
    std::array<char, 16 * 1'024> bytes;
    if (::redisReaderFeed(socket_->reader, bytes.data(), tls_->read(bytes.data(), bytes.size())) != REDIS_OK) lost();
  }
  std::unique_ptr<redisReply, void (*)(void*)> const owned(static_cast<redisReply*>(reply), ::freeReplyObject);
  heard_ = true;
  return read(*owned);
}

answer session::ask(command const& words) {
  send(words);
  auto found = next();
  if (found.what == answer::type::error) refuse(found.text);
  return found;
}

std::int64_t session::ask_number(command const& words) {
  auto const found = ask(words);
  if (found.what != answer::type::number) strange();
  return found.number;
}

std::vector<answer> session::ask_all(std::vector<command> const& all) {
  for (auto const& words : all) send(words);
  std::vector<answer> answers;
  for (std::size_t i = 0; i < all.size(); ++i) answers.push_back(next());
  return answers;
}

void session::tell_of_replica() {
  auto const role = ask_all({{"ROLE"}}).front();
  if (!role.list.empty() && role.list.front().text == "slave")
    say("the server at " + quoted(where_) + " is a replica: what it shows may be over, and what is new not there yet");
}

bool session::has_sharded_channels() {
  if (!in_cluster_) return false;
  auto const known = ask_all({{"COMMAND", "INFO", "SSUBSCRIBE"}}).front();
  return known.list.empty() || known.list.front().what == answer::type::list;
}

void session::listen(std::vector<std::string> const& channels) {
  command subscribe{"SUBSCRIBE"};
  subscribe.insert(subscribe.end(), channels.begin(), channels.end());
  send(subscribe);
  subscribe.front() = "SSUBSCRIBE";
  if (in_cluster_) send(subscribe);
}

bool session::receive(answer& into, milliseconds limit) {
  void* const reply = received();  // it may have come with the one before
  if (!reply) {
    pollfd readable{socket_->fd, POLLIN, 0};
    bool const here = tls_ && tls_->pending();
    if (!here && ::poll(&readable, 1, static_cast<int>(limit.count())) != 1) return false;
    into = next();
    return true;
  }
  std::unique_ptr<redisReply, void (*)(void*)> const owned(static_cast<redisReply*>(reply), ::freeReplyObject);
  into = read(*owned);
  return true;
}

namespace {

// `p:{N}`, as the kinds name what belongs to a name.
std::string braced(std::string const& name) { return name.find('{') == name.npos ? '{' + name + '}' : name; }

}  // namespace

std::string line_of(std::string const& name) { return "redisson_lock_queue:" + braced(name); }

std::string leases_of(std::string const& name) { return braced(name) + ":timeout"; }

std::string channel_of_permits(std::string const& name) { return "redisson_sc:" + braced(name); }

std::vector<std::string> channels_of(std::string const& name) {
  return {channel_of(name, "lock"), channel_of(name, "read"), channel_of(name, "plain")};
}

std::string channel_of(std::string const& name, std::string const& kind) {
  bool const shared = kind == "read" || kind == "write";
  return (kind.starts_with("plain") ? "latchkey_plain__channel:"
          : shared                  ? "redisson_rwlock:"
                                    : "redisson_lock__channel:") +
         braced(name);
}

}  // namespace latchkey::tool
