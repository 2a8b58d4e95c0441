#include <engine/guards.hpp>
#include <engine/name_lookup.hpp>

#include <netdb.h>
#include <sys/socket.h>

#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace latchkey::detail {

namespace {

name_lookup::endpoints ask_system(std::string const& host, std::uint16_t port, std::string& problem) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  int const failed = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0) {
    problem = ::gai_strerror(failed);
    return {};
  }
  name_lookup::endpoints all;
  for (addrinfo* address = found; address != nullptr; address = address->ai_next)
    all.emplace_back(address->ai_addr, static_cast<std::size_t>(address->ai_addrlen), IPPROTO_TCP);
  ::freeaddrinfo(found);
  return all;
}

}  // namespace

struct name_lookup::mailbox {
  std::mutex mutex;
  std::map<ticket, receiver> waiting;
  ticket last = 0;
  bool asking = false;  // a thread is under way; it looks for who waits when it has the answer
};

name_lookup::name_lookup() : mailbox_(std::make_shared<mailbox>()) {}

name_lookup::~name_lookup() {
  std::map<ticket, receiver> gone;
  std::scoped_lock const lock(mailbox_->mutex);
  gone.swap(mailbox_->waiting);
}

name_lookup::ticket name_lookup::ask(std::string host, std::uint16_t port, receiver done) {
  std::scoped_lock const lock(mailbox_->mutex);
  ticket const mine = ++mailbox_->last;
  mailbox_->waiting.emplace(mine, std::move(done));
  if (mailbox_->asking) return mine;
  try {
    quiet_signals const blocked;
    std::thread([box = mailbox_, name = std::move(host), port] {
      std::string problem;
      auto const all = ask_system(name, port, problem);
      std::scoped_lock const within(box->mutex);
      box->asking = false;
      for (auto& [which, tell] : std::exchange(box->waiting, {})) tell(all, problem);
    }).detach();
    mailbox_->asking = true;
  } catch (...) {
    mailbox_->waiting.erase(mine);
    throw;
  }
  return mine;
}

void name_lookup::forget(ticket which) {
  if (which == 0) return;
  decltype(mailbox_->waiting)::node_type gone;
  std::scoped_lock const lock(mailbox_->mutex);
  gone = mailbox_->waiting.extract(which);
}

}  // namespace latchkey::detail
