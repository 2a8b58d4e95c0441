#include <support/fault_proxy.hpp>

#include <support/patience.hpp>
#include <support/proxy_loop.hpp>

#include <sys/socket.h>

namespace latchkey::test {

fault_proxy::fault_proxy(endpoint server, bool tcp)
    : where_(tcp ? endpoint{{}, free_port()} : endpoint{folder_.path() + "/proxy.sock", 0}),
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

std::map<std::string, int> fault_proxy::requests() {
  std::map<std::string, int> seen;
  perform([&](loop& all) { seen = all.requests; });
  return seen;
}

}  // namespace latchkey::test
