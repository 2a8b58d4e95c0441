#include <engine/name_lookup.hpp>
#include <engine/quiet_signals.hpp>

#include <netdb.h>
#include <sys/socket.h>

#include <thread>

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
  for (addrinfo* one = found; one != nullptr; one = one->ai_next)
    all.emplace_back(one->ai_addr, static_cast<std::size_t>(one->ai_addrlen), IPPROTO_TCP);
  ::freeaddrinfo(found);
  return all;
}

}  // namespace

void name_lookup::start(std::string host, std::uint16_t port, receiver done) {
  mailbox_ = std::make_shared<mailbox>();
  mailbox_->done = std::move(done);
  quiet_signals const blocked;
  std::thread([box = mailbox_, name = std::move(host), port] {
    try {
      std::string problem;
      endpoints all = ask_system(name, port, problem);
      std::scoped_lock const lock(box->mutex);
      if (box->done) box->done(std::move(all), std::move(problem));
      box->done = nullptr;
    } catch (std::bad_alloc const&) {
      // As if the name server had not answered.
    }
  }).detach();
}

void name_lookup::abandon() {
  if (!mailbox_) return;
  receiver gone;
  {
    std::scoped_lock const lock(mailbox_->mutex);
    gone.swap(mailbox_->done);
  }
  mailbox_.reset();
}

}  // namespace latchkey::detail
