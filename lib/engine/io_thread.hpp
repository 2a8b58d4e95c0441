#pragma once

#include <base/instant.hpp>

#include <boost/asio/any_io_executor.hpp>

#include <exception>
#include <functional>
#include <memory>

namespace latchkey::detail {

namespace asio = boost::asio;

// An io_context with one thread of its own: of clients that were given no executor, one for I/O and one for callbacks.
class io_thread {
 public:
  enum class begins { at_once, when_needed };

  // When needed: with the first that is given to its executor, or that asks that for its context.
  explicit io_thread(begins when = begins::at_once);
  // Waits for the thread for a moment, unless it is the calling one; then lets it end by itself.
  ~io_thread();
  io_thread(io_thread const&) = delete;
  io_thread& operator=(io_thread const&) = delete;

  // `escaped` is told what a handler let escape; the thread goes on running. Before anything else. One that begins when
  // it is needed and cannot be had then leaves its work to `instead`.
  void start(std::function<void(std::exception_ptr)> escaped, asio::any_io_executor instead = {});

  asio::any_io_executor executor() const;
  // The same, and the thread does not end while a copy lives. After the end: the system executor, so that calls
  // on a closed client still complete.
  asio::any_io_executor tracked() const;

  bool on_thread() const;
  // Was finish() called? Then the executor runs nothing new.
  bool finishing() const;
  // The thread ends when what was handed to it is done.
  void finish();
  // False: not by `end`.
  bool join_until(instant end);

 private:
  class shared;
  begins const when_;
  std::shared_ptr<shared> shared_;  // the thread has a share
};

}  // namespace latchkey::detail
