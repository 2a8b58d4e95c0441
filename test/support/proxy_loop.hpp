#pragma once

#include <support/fault_proxy.hpp>

#include <cstddef>
#include <deque>
#include <future>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::test {

// Cuts what a client sends into commands. Only for well-formed bytes: arrays of strings.
class request_parser {
 public:
  struct request {
    std::vector<std::string> words;
    std::string bytes;  // as they came

    // In upper case.
    std::string name() const;
  };

  void feed(std::string_view bytes) { pending_ += bytes; }
  // False: needs more bytes.
  bool next(request& out);

 private:
  std::string pending_;
};

// How many bytes the first reply in here has; 0 if it is not complete. For well-formed bytes.
std::size_t reply_length(std::string_view bytes);

// One client and what it reaches through the proxy.
struct proxy_link {
  descriptor client;
  descriptor server;
  request_parser parser;
  std::string to_server;
  std::string to_client;
  std::string from_server;  // the beginning of an answer
  // What the client is still to read, in the order of its requests.
  struct answer {
    bool forwarded;       // the server answers, or is made to look as if
    std::string instead;  // what the client reads, if not the server's answer
  };
  std::deque<answer> owed;
  bool messages = false;     // has sent SUBSCRIBE
  bool half_closed = false;  // the client was told that nothing more comes
  bool held_back = false;    // what this client sends is kept
  bool pretending = false;   // has no server behind it
};

// The thread of a proxy and all that belongs to it.
class fault_proxy::loop {
 public:
  loop(endpoint server, endpoint const& where, fault_proxy& proxy);
  ~loop();

  void run();
  void post(std::packaged_task<void()> step);
  void end();

  // --- for steps, on the thread ---
  static bool concerns(proxy_link const& link, lines whose);
  void cut(proxy_link& link);

  struct injection {
    std::string answer;
    int times;
    bool forwarded;
  };
  std::list<proxy_link> links;
  std::map<lines, bool> held_requests, held_replies, swallowed;
  std::map<std::string, injection> injections;
  std::map<std::string, int> requests;
  std::string pretended;
  bool sliced = false;
  bool silent = false;
  bool refused = false;
  bool cut_armed = false;
  way cut_way = way::requests;
  std::size_t cut_left = 0;
  std::size_t passed_requests = 0;
  std::size_t passed_replies = 0;

 private:
  void accept_one();
  void from_client(proxy_link& link);
  void from_server(proxy_link& link);
  void take_requests(proxy_link& link, std::string_view bytes);
  static void answer_injected(proxy_link& link);
  void flush(proxy_link& link, way which);
  bool held(proxy_link const& link, way which) const;
  bool over(proxy_link const& link) const;
  void do_steps();

  endpoint const server_;
  fault_proxy& proxy_;
  descriptor listener_;
  descriptor wake_;
  bool ended_ = false;
  std::mutex mutex_;
  std::vector<std::packaged_task<void()>> steps_;
};

}  // namespace latchkey::test
