#include <support/fault_proxy.hpp>

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <utility>

namespace latchkey::test {

namespace {

// The number after the type byte at `at`; moves `at` behind the end of the line.
std::optional<std::size_t> read_length(std::string_view bytes, std::size_t& at) {
  auto const end = bytes.find("\r\n", at);
  if (end == std::string_view::npos) return std::nullopt;
  auto const length = std::stoull(std::string(bytes.substr(at + 1, end - at - 1)));
  at = end + 2;
  return length;
}

}  // namespace

std::string request_parser::request::name() const {
  std::string result = words.empty() ? std::string() : words.front();
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return result;
}

bool request_parser::next(request& out) {
  std::size_t at = 0;
  auto const count = read_length(pending_, at);
  if (!count) return false;
  out.words.clear();
  for (std::size_t i = 0; i < *count; ++i) {
    auto const length = read_length(pending_, at);
    if (!length || pending_.size() < at + *length + 2) return false;
    out.words.push_back(pending_.substr(at, *length));
    at += *length + 2;
  }
  out.bytes = pending_.substr(0, at);
  pending_.erase(0, at);
  return true;
}

std::size_t reply_length(std::string_view bytes) {
  auto const end = bytes.find("\r\n");
  if (end == std::string_view::npos) return 0;
  std::size_t length = end + 2;
  if (bytes[0] != '$' && bytes[0] != '*') return length;
  auto const count = std::stoll(std::string(bytes.substr(1, end - 1)));
  if (count < 0) return length;
  if (bytes[0] == '$') {
    length += static_cast<std::size_t>(count) + 2;
    return length <= bytes.size() ? length : 0;
  }
  for (long long i = 0; i < count; ++i) {
    auto const part = reply_length(bytes.substr(length));
    if (part == 0) return 0;
    length += part;
  }
  return length;
}

namespace {

constexpr std::size_t most_pending = 4 << 20;

// The peer reads a reset, or on a Unix socket an end of file.
void reset(descriptor& socket) {
  linger const at_once{1, 0};
  if (socket) ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  socket.close();
}

// Empty at the end of the stream.
std::string read_some(descriptor& socket, std::atomic<int>* resets = nullptr) {
  std::array<char, 65536> buffer;
  auto const got = ::recv(socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got > 0) return {buffer.data(), static_cast<std::size_t>(got)};
  if (got < 0 && errno == ECONNRESET && resets) ++*resets;
  if (got == 0 || (errno != EAGAIN && errno != EINTR)) socket.close();
  return {};
}

bool any(std::map<fault_proxy::lines, bool> const& set, proxy_link const& link) {
  using lines = fault_proxy::lines;
  auto const on = [&](lines whose) {
    auto const found = set.find(whose);
    return found != set.end() && found->second;
  };
  return on(lines::all) || on(link.messages ? lines::messages : lines::commands);
}

}  // namespace

fault_proxy::loop::loop(endpoint server, endpoint const& where, fault_proxy& proxy)
    : server_(std::move(server)), proxy_(proxy), listener_(listen_on(where)), wake_(::eventfd(0, EFD_CLOEXEC)) {}

fault_proxy::loop::~loop() = default;

void fault_proxy::loop::post(std::packaged_task<void()> step) {
  std::lock_guard guard(mutex_);
  steps_.push_back(std::move(step));
  ::eventfd_write(wake_.get(), 1);
}

void fault_proxy::loop::end() { ended_ = true; }

void fault_proxy::loop::do_steps() {
  eventfd_t ignored;
  ::eventfd_read(wake_.get(), &ignored);
  std::vector<std::packaged_task<void()>> steps;
  {
    std::lock_guard guard(mutex_);
    steps.swap(steps_);
  }
  for (auto& step : steps) step();
}

bool fault_proxy::loop::concerns(proxy_link const& link, lines whose) {
  return whose == lines::all || (whose == lines::messages) == link.messages;
}

bool fault_proxy::loop::held(proxy_link const& link, way which) const {
  bool const back = which == way::requests && link.held_back;
  return silent || back || any(which == way::requests ? held_requests : held_replies, link);
}

void fault_proxy::loop::run() {
  std::vector<pollfd> ready;
  while (!ended_) {
    ready.assign({{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}});
    for (auto& link : links) {
      auto const events = [&](std::string const& from, std::string const& to, way out) {
        bool const reads = !silent && from.size() < most_pending;
        bool const writes = !to.empty() && !held(link, out);
        return static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
      };
      ready.push_back({link.client.get(), events(link.to_server, link.to_client, way::replies), 0});
      ready.push_back({link.server.get(), events(link.to_client, link.to_server, way::requests), 0});
      // An end of file is reported even to those who do not ask.
      for (auto last = ready.end() - 2; last != ready.end(); ++last)
        if (last->events == 0) last->fd = -1;
    }
    if (!await(ready)) continue;
    auto at = ready.begin() + 2;
    for (auto& link : links) {
      auto const client = (at++)->revents;
      auto const server = (at++)->revents;
      if (link.client && (client & (POLLIN | POLLHUP | POLLERR))) from_client(link);
      if (link.server && (server & (POLLIN | POLLHUP | POLLERR))) from_server(link);
      pass_due(link);
      flush(link, way::requests);
      flush(link, way::replies);
    }
    links.remove_if([this](proxy_link const& link) { return over(link); });
    if (ready[1].revents) accept_one();
    if (ready[0].revents) do_steps();
  }
}

// Until something comes, or the first of what is delayed is due.
bool fault_proxy::loop::await(std::vector<pollfd>& ready) const {
  auto first = clock::time_point::max();
  for (auto const& link : links)
    if (!link.on_the_way.empty()) first = std::min(first, link.on_the_way.front().due);
  auto const left = std::max<std::int64_t>(std::chrono::nanoseconds(first - clock::now()).count(), 0);
  timespec const limit{static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
  return ::ppoll(ready.data(), ready.size(), first == clock::time_point::max() ? nullptr : &limit, nullptr) >= 0;
}

// Bytes that are on their way arrive although their sender is gone.
bool fault_proxy::loop::over(proxy_link const& link) const {
  if (!link.on_the_way.empty()) return false;
  if (link.pretending) return !link.client || (link.to_client.empty() && link.half_closed);
  bool const to_server = link.server && !link.to_server.empty();
  bool const to_client = link.client && !link.to_client.empty();
  return (!link.client && !to_server) || (!link.server && !to_client);
}

void fault_proxy::loop::accept_one() {
  descriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!client) return;
  ++proxy_.accepted_;
  if (refused) return reset(client);
  auto& link = links.emplace_back();
  link.client = std::move(client);
  link.pretending = !pretended.empty();
  if (link.pretending) return;
  link.server = connect_to(server_);
  if (!link.server) links.pop_back();
}

void fault_proxy::loop::from_client(proxy_link& link) {
  auto const bytes = read_some(link.client, &proxy_.resets_);
  if (bytes.empty()) return;
  if (!link.pretending) return take_requests(link, bytes);
  if (!link.half_closed) link.to_client += pretended;
  link.half_closed = true;
}

void fault_proxy::loop::take_requests(proxy_link& link, std::string_view bytes) {
  if (opaque) return link.on_the_way.push_back({clock::now() + delay, way::requests, std::string(bytes)});
  link.parser.feed(bytes);
  for (request_parser::request one; link.parser.next(one);) {
    auto const name = one.name();
    ++requests[name];
    if (name == "SUBSCRIBE") link.messages = true;
    auto const found = injections.find(name);
    bool const injected = found != injections.end() && found->second.times > 0;
    bool const forwarded = !injected || found->second.forwarded;
    if (injected) --found->second.times;
    if (forwarded) link.to_server += one.bytes;
    link.owed.push_back({forwarded, injected ? found->second.answer : std::string()});
  }
  answer_injected(link);
}

// Behind the answers to earlier requests.
void fault_proxy::loop::answer_injected(proxy_link& link) {
  while (!link.owed.empty() && !link.owed.front().forwarded) {
    link.to_client += link.owed.front().instead;
    link.owed.pop_front();
  }
}

void fault_proxy::loop::from_server(proxy_link& link) {
  link.from_server += read_some(link.server);
  if (opaque) link.on_the_way.push_back({clock::now() + delay, way::replies, std::exchange(link.from_server, {})});
  while (auto const length = reply_length(link.from_server)) {
    auto reply = link.from_server.substr(0, length);
    link.from_server.erase(0, length);
    if (!link.owed.empty()) {
      if (!link.owed.front().instead.empty()) reply = std::move(link.owed.front().instead);
      link.owed.pop_front();
    }
    if (!any(swallowed, link) && !link.half_closed)
      link.to_client += reply;
    else
      ++swallowed_replies;
    answer_injected(link);
  }
}

void fault_proxy::loop::pass_due(proxy_link& link) {
  while (!link.on_the_way.empty() && link.on_the_way.front().due <= clock::now()) {
    auto& next = link.on_the_way.front();
    (next.which == way::requests ? link.to_server : link.to_client) += next.bytes;
    link.on_the_way.pop_front();
  }
}

void fault_proxy::loop::flush(proxy_link& link, way which) {
  bool const requesting = which == way::requests;
  auto& pending = requesting ? link.to_server : link.to_client;
  auto& socket = requesting ? link.server : link.client;
  if (pending.empty() || !socket || held(link, which)) return;
  std::size_t length = sliced ? 1 : pending.size();
  bool const cuts = cut_armed && cut_way == which && length > cut_left;
  if (cuts) length = cut_left;
  auto const sent = length == 0 ? 0 : ::send(socket.get(), pending.data(), length, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) {
    if (errno != EAGAIN && errno != EINTR) socket.close();
    return;
  }
  auto const count = static_cast<std::size_t>(sent);
  pending.erase(0, count);
  (requesting ? passed_requests : passed_replies) += count;
  if (cut_armed && cut_way == which) cut_left -= count;
  if (!cuts || count != length) return;
  cut_armed = false;
  cut(link);
  proxy_.cut_happened_ = true;
}

void fault_proxy::loop::cut(proxy_link& link) {
  reset(link.client);
  // What has reached the server is run; the rest is lost with the connection.
  link.server.close();
}

fault_proxy::fault_proxy(endpoint server, bool tcp)
    : where_(tcp ? endpoint{{}, free_port()} : endpoint{folder_.emplace().path() + "/proxy.sock", 0}),
      loop_(std::make_unique<loop>(std::move(server), where_, *this)),
      thread_([this] { loop_->run(); }) {}

fault_proxy::~fault_proxy() {
  perform([](loop& all) { all.end(); });
  thread_.join();
}

void fault_proxy::perform(std::function<void(loop&)> step) {
  std::packaged_task<void()> task([this, &step] { step(*loop_); });
  auto done = task.get_future();
  loop_->post(std::move(task));
  done.get();
}

void fault_proxy::hold(way which, bool on, lines whose) {
  perform([=](loop& all) { (which == way::requests ? all.held_requests : all.held_replies)[whose] = on; });
}

void fault_proxy::hold_back(bool on) {
  perform([=](loop& all) {
    for (auto& link : all.links) link.held_back = on;
  });
}

void fault_proxy::swallow_replies(bool on, lines whose) {
  perform([=](loop& all) { all.swallowed[whose] = on; });
}

void fault_proxy::opaque(bool on, std::chrono::nanoseconds delay) {
  perform([=](loop& all) { all.opaque = on, all.delay = delay; });
}

void fault_proxy::slice(bool on) {
  perform([=](loop& all) { all.sliced = on; });
}

void fault_proxy::silent(bool on) {
  perform([=](loop& all) { all.silent = on; });
}

void fault_proxy::refuse(bool on) {
  perform([=](loop& all) { all.refused = on; });
}

void fault_proxy::pretend(std::string text) {
  perform([&](loop& all) { all.pretended = std::move(text); });
}

void fault_proxy::inject(std::string name, std::string answer, int times) {
  perform([&](loop& all) { all.injections[name] = {std::move(answer), times, false}; });
}

void fault_proxy::replace(std::string name, std::string answer, int times) {
  perform([&](loop& all) { all.injections[name] = {std::move(answer), times, true}; });
}

void fault_proxy::push(std::string bytes, lines whose) {
  perform([&](loop& all) {
    for (auto& link : all.links)
      if (loop::concerns(link, whose)) link.to_client += bytes;
  });
  auto const written = [&] {
    bool all_written = true;
    perform([&](loop& all) {
      for (auto& link : all.links)
        if (loop::concerns(link, whose) && link.client && !link.to_client.empty()) all_written = false;
    });
    return all_written;
  };
  wait_until(written);
}

void fault_proxy::cut_after(way which, std::size_t bytes) {
  perform([=, this](loop& all) {
    cut_happened_ = false;
    all.cut_armed = true;
    all.cut_way = which;
    all.cut_left = bytes;
  });
}

int fault_proxy::cut(lines whose) {
  int count = 0;
  perform([&](loop& all) {
    for (auto& link : all.links) {
      if (!link.client || !loop::concerns(link, whose)) continue;
      all.cut(link);
      ++count;
    }
    all.links.remove_if([](proxy_link const& link) { return !link.client && !link.server; });
  });
  return count;
}

void fault_proxy::half_close(lines whose) {
  perform([=](loop& all) {
    for (auto& link : all.links) {
      if (!link.client || !loop::concerns(link, whose)) continue;
      ::shutdown(link.client.get(), SHUT_WR);
      link.half_closed = true;
      link.to_client.clear();
    }
  });
}

int fault_proxy::open() {
  int count = 0;
  perform([&](loop& all) {
    for (auto const& link : all.links) count += link.client ? 1 : 0;
  });
  return count;
}

std::size_t fault_proxy::passed(way which) {
  std::size_t count = 0;
  perform([&](loop& all) { count = which == way::requests ? all.passed_requests : all.passed_replies; });
  return count;
}

std::size_t fault_proxy::swallowed() {
  std::size_t count = 0;
  perform([&](loop& all) { count = all.swallowed_replies; });
  return count;
}

std::map<std::string, int> fault_proxy::requests() {
  std::map<std::string, int> seen;
  perform([&](loop& all) { seen = all.requests; });
  return seen;
}

}  // namespace latchkey::test
