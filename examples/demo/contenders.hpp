#pragma once

#include "request.hpp"
#include "shop.hpp"
#include "worker.hpp"

#include <latchkey/error.hpp>

#include <atomic>
#include <exception>
#include <functional>
#include <latch>
#include <thread>
#include <vector>

namespace demo {

/// Serves `wanted`, and writes down what an exception means for it. False: the caller should take no more requests.
template <class Serve>
bool serve_and_record(worker& self, request& wanted, Serve serve) {
  try {
    serve();
    return true;
  } catch (latchkey::lock_error const& error) {
    note_error(self.record(), error.what());
    error.code() == latchkey::errc::lease_lost ? wanted.lost() : wanted.failed();
  } catch (std::exception const& error) {
    note_error(self.record(), error.what());
    wanted.failed();
  }
  return false;
}

/// Runs the worker's share of requests at a time, each in a thread with a shop of its own, until there are no more.
/// `make_serve(shop&, thread number)` gives each thread the function `void(request&)` that serves.
template <class MakeServe>
void run_threads(worker& self, MakeServe make_serve) {
  std::latch connected(self.share());
  std::latch go(1);
  std::vector<std::jthread> threads;
  std::atomic<bool> broken = false;

  auto const contend = [&](std::uint32_t number) {
    std::optional<shop> counter;
    try {
      counter.emplace(self.socket_path(), self.think());
    } catch (std::exception const& error) {
      note_error(self.record(), error.what());
      broken = true;
    }
    connected.count_down();
    go.wait();
    if (broken) return;
    auto serve = make_serve(*counter, number);
    while (auto wanted = next_request(self.shared())) {
      if (!serve_and_record(self, *wanted, [&] { serve(*wanted); })) return;
    }
  };

  try {
    for (std::uint32_t i = 0; i < self.share(); ++i) threads.emplace_back(contend, i);
  } catch (...) {
    // Those that run already must come to their end before the latches go.
    broken = true;
    go.count_down();
    throw;
  }
  connected.wait();
  if (!broken) self.ready_and_wait();
  go.count_down();
  threads.clear();
  if (!broken) self.finished();
}

}  // namespace demo
