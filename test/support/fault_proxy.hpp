#pragma once

#include <support/patience.hpp>
#include <support/raw_redis.hpp>

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace latchkey::test {

// Stands between clients and a server and does to the bytes what a network can do, or answers in the
// server's place. What is set holds for connections that exist and for those that come.
class fault_proxy {
 public:
  enum class way { requests, replies };
  // Which connections: those that have sent SUBSCRIBE, those that have not, or all.
  enum class lines { all, commands, messages };

  // Listens on a Unix socket of its own, or with `tcp` on a free loopback port.
  explicit fault_proxy(endpoint server, bool tcp = false);
  fault_proxy(fault_proxy const&) = delete;
  fault_proxy& operator=(fault_proxy const&) = delete;
  ~fault_proxy();

  endpoint const& where() const { return where_; }
  std::string uri() const { return where_.uri(); }

  // Bytes of this way are kept until hold is false again.
  void hold(way which, bool on, lines whose = lines::all);
  // What is sent on the connections of this moment is kept until it is off again; new ones work. So requests arrive
  // after those of a connection that came later, also when their sender is gone.
  void hold_back(bool on);
  // Replies are thrown away; the connection stays open.
  void swallow_replies(bool on, lines whose = lines::all);
  // Passes bytes on as they come, of whatever protocol, so much later each way: nothing is counted or injected, and all
  // lines are one.
  void opaque(bool on, std::chrono::nanoseconds delay = {});
  // One byte per write.
  void slice(bool on);
  // Connections are accepted, and nothing is ever read from them or written to them.
  void silent(bool on);
  // Connections are accepted and closed at once.
  void refuse(bool on);
  // Whatever comes first on a new connection is answered with this text, then the connection is closed.
  void pretend(std::string text);
  // The next `times` requests of this name do not reach the server; this is their answer.
  void inject(std::string name, std::string answer, int times = 1);
  // The next `times` requests of this name reach the server, whose own answer is thrown away for this one.
  // Only with nothing else under way on the connection.
  void replace(std::string name, std::string answer, int times = 1);
  // Bytes that no request asked for, to all clients of these connections.
  void push(std::string bytes, lines whose = lines::all);

  // From now on `bytes` more bytes of this way are let through, all connections together; then the connection
  // that carries the next one is cut, once. Replies are cut after the server ran the request.
  void cut_after(way which, std::size_t bytes);
  // True when cut_after has happened.
  bool cut_happened() const { return cut_happened_; }
  // Cuts these connections now; returns how many.
  int cut(lines whose = lines::all);
  // The clients of these connections read an end of file; what they send still arrives.
  void half_close(lines whose = lines::all);

  // --- what was seen ---
  int accepted() const { return accepted_; }
  // Connections whose clients have reset them, as was seen while reading.
  int resets() const { return resets_; }
  int open();
  // Bytes passed so far, all connections together.
  std::size_t passed(way which);
  // Replies that no client has seen.
  std::size_t swallowed();
  // Requests seen so far, by name in upper case; injected ones too.
  std::map<std::string, int> requests();

 private:
  class loop;

  // Runs on the proxy's thread; comes back when it is done.
  void perform(std::function<void(loop&)> step);

  std::optional<temp_folder> folder_;  // of a Unix socket
  endpoint where_;
  std::atomic<int> accepted_{0};
  std::atomic<int> resets_{0};
  std::atomic<bool> cut_happened_{false};
  std::unique_ptr<loop> loop_;
  std::thread thread_;
};

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
  // What goes on at its time.
  struct delayed {
    clock::time_point due;
    fault_proxy::way which;
    std::string bytes;
  };
  std::deque<delayed> on_the_way;
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
  bool opaque = false;
  std::chrono::nanoseconds delay{0};  // of what is opaque
  bool silent = false;
  bool refused = false;
  bool cut_armed = false;
  way cut_way = way::requests;
  std::size_t cut_left = 0;
  std::size_t passed_requests = 0;
  std::size_t passed_replies = 0;
  std::size_t swallowed_replies = 0;

 private:
  void accept_one();
  void from_client(proxy_link& link);
  void from_server(proxy_link& link);
  void take_requests(proxy_link& link, std::string_view bytes);
  static void answer_injected(proxy_link& link);
  static void pass_due(proxy_link& link);
  bool await(std::vector<pollfd>& ready) const;
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
