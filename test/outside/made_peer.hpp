// A server whose every answer the test makes up.
#pragma once

#include <support/raw_redis.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace latchkey::outside {

// Listens on a Unix socket of its own. Its thread reads commands and asks the test for the bytes of the answer.
class made_peer {
 public:
  struct request {
    int connection;  // counted from 1
    std::vector<std::string> words;

    std::string const& name() const { return words.front(); }
    bool begins(std::vector<std::string> const& with) const;
  };
  // Nothing: the connection is closed. Called on the peer's thread.
  using answerer = std::function<std::optional<std::string>(request const&)>;

  explicit made_peer(answerer answer);
  made_peer(made_peer const&) = delete;
  made_peer& operator=(made_peer const&) = delete;
  ~made_peer();

  // What a healthy server says to the words of a handshake, to PING and to SUBSCRIBE; a simple error to anything else.
  static std::string usual(request const& asked, std::string const& run_id = std::string(40, 'a'));
  static std::string bulk(std::string const& text);

  std::string uri() const { return where_.uri(); }
  int accepted() const { return accepted_; }
  int seen(std::vector<std::string> const& with) const;

 private:
  struct connection;
  void accept();

  test::temp_folder folder_;
  test::endpoint where_;
  answerer answer_;
  std::atomic<int> accepted_{0};
  mutable std::mutex mutex_;
  std::vector<request> seen_;
  boost::asio::io_context io_;
  boost::asio::local::stream_protocol::acceptor acceptor_;
  std::thread thread_;
};

}  // namespace latchkey::outside
