#include <outside/made_peer.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <array>

namespace latchkey::outside {

using boost::asio::local::stream_protocol;

bool made_peer::request::begins(std::vector<std::string> const& with) const {
  return words.size() >= with.size() && std::equal(with.begin(), with.end(), words.begin());
}

struct made_peer::connection : std::enable_shared_from_this<connection> {
  connection(made_peer& peer, stream_protocol::socket accepted, int count)
      : of(peer), socket(std::move(accepted)), number(count) {}

  void read() {
    socket.async_read_some(boost::asio::buffer(chunk),
                           [self = shared_from_this()](boost::system::error_code error, std::size_t length) {
                             if (error) return;
                             self->unread.append(self->chunk.data(), length);
                             while (auto asked = self->next())
                               if (!self->answer(*asked)) return;
                             self->read();
                           });
  }

  // `*2\r\n$3\r\nGET\r\n$1\r\nk\r\n`; nothing while it is not whole.
  std::optional<request> next() {
    std::size_t at = 0;
    auto const number_after = [&](char mark) -> std::optional<std::size_t> {
      auto const end = unread.find("\r\n", at);
      if (end == std::string::npos || unread[at] != mark) return {};
      auto const value = std::stoul(unread.substr(at + 1, end - at - 1));
      at = end + 2;
      return value;
    };
    auto const count = number_after('*');
    if (!count) return {};
    request made{number, {}};
    for (std::size_t i = 0; i < *count; ++i) {
      auto const length = number_after('$');
      if (!length || at + *length + 2 > unread.size()) return {};
      made.words.push_back(unread.substr(at, *length));
      at += *length + 2;
    }
    unread.erase(0, at);
    return made;
  }

  bool answer(request const& asked) {
    {
      std::lock_guard guard(of.mutex_);
      of.seen_.push_back(asked);
    }
    auto const said = of.answer_(asked);
    boost::system::error_code ignored;
    if (said) boost::asio::write(socket, boost::asio::buffer(*said), ignored);
    if (!said) socket.close(ignored);
    return said.has_value();
  }

  made_peer& of;
  stream_protocol::socket socket;
  int const number;
  std::string unread;
  std::array<char, 4096> chunk{};
};

made_peer::made_peer(answerer answer)
    : where_{.path = folder_.path() + "/peer.sock"},
      answer_(std::move(answer)),
      acceptor_(io_, stream_protocol::endpoint(where_.path)) {
  accept();
  thread_ = std::thread([this] { io_.run(); });
}

made_peer::~made_peer() {
  io_.stop();
  thread_.join();
}

void made_peer::accept() {
  acceptor_.async_accept([this](boost::system::error_code error, stream_protocol::socket socket) {
    if (error) return;
    std::make_shared<connection>(*this, std::move(socket), ++accepted_)->read();
    accept();
  });
}

int made_peer::seen(std::vector<std::string> const& with) const {
  std::lock_guard guard(mutex_);
  return static_cast<int>(
      std::count_if(seen_.begin(), seen_.end(), [&](request const& one) { return one.begins(with); }));
}

std::string made_peer::bulk(std::string const& text) {
  return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

std::string made_peer::usual(request const& asked, std::string const& run_id) {
  auto const line = [](std::string const& id) { return bulk("id=" + id + " addr=/made:0 laddr=/made:0 name="); };
  auto const& words = asked.words;
  if (asked.name() == "ROLE") return "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n";
  if (asked.name() == "INFO") return bulk("# Server\r\nredis_version:7.0.15\r\nrun_id:" + run_id + "\r\n");
  if (asked.begins({"CLIENT", "KILL"})) return ":0\r\n";
  if (asked.begins({"CLIENT", "INFO"})) return line(std::to_string(asked.connection));
  if (asked.begins({"CLIENT", "LIST"})) return line(words.back());
  if (asked.name() == "PING") return "+PONG\r\n";
  if (asked.name() == "AUTH" || asked.name() == "SELECT" || asked.name() == "CLIENT") return "+OK\r\n";
  if (asked.name() == "SUBSCRIBE" || asked.name() == "UNSUBSCRIBE") {
    std::string what = asked.name();
    for (char& c : what) c = static_cast<char>(c - 'A' + 'a');
    return "*3\r\n" + bulk(what) + bulk(words.at(1)) + ":1\r\n";
  }
  if (asked.name() == "SCRIPT") {
    std::string made = "*" + std::to_string(words.size() - 2) + "\r\n";
    for (std::size_t i = 2; i < words.size(); ++i) made += ":1\r\n";
    return made;
  }
  return "-ERR unknown command\r\n";
}

}  // namespace latchkey::outside
