#pragma once

#include <latchkey/boost_guard.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <utility>

namespace latchkey {
namespace asio = boost::asio;
}

namespace latchkey::detail {

template <class Signature>
using handler = asio::any_completion_handler<Signature>;

// Carries any completion token to one erased entry, so that the bodies are compiled once, in the library.
// It names an executor because token adapters such as cancel_after ask the initiation for it.
template <class Signature, class Start>
class initiation {
 public:
  using executor_type = asio::any_io_executor;

  initiation(executor_type executor, Start start) : executor_(std::move(executor)), start_(std::move(start)) {}

  executor_type get_executor() const noexcept { return executor_; }

  template <class Handler>
  void operator()(Handler&& given) {
    start_(handler<Signature>(std::forward<Handler>(given)));
  }

 private:
  executor_type executor_;
  Start start_;
};

template <class Signature, class Token, class Start>
auto initiate(asio::any_io_executor executor, Token& token, Start start) {
  return asio::async_initiate<Token, Signature>(initiation<Signature, Start>(std::move(executor), std::move(start)),
                                                token);
}

}  // namespace latchkey::detail
