#pragma once

#include <latchkey/boost_guard.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>

#include <type_traits>
#include <utility>

namespace latchkey {
namespace asio = boost::asio;
}

namespace latchkey::detail {

// A handler of any type, and its executor: an any_completion_handler gives that only in a form that can be compared
// with nothing, and takes memory for it.
template <class Signature>
class handler : public asio::any_completion_handler<Signature> {
  template <class Given>
  using executor_of = typename asio::associated_executor<Given, asio::any_io_executor>::type;

 public:
  template <class Given>
  requires(!std::is_same_v<std::decay_t<Given>, handler>) explicit handler(Given&& given)
      : handler(where_of<std::decay_t<Given>>(given), std::forward<Given>(given)) {}

  // Empty: it has none, or, if has_other(), one of another sort.
  asio::any_io_executor const& where() const noexcept { return where_; }
  bool has_other() const noexcept { return has_other_; }

 private:
  template <class Given>
  static constexpr bool comparable = std::is_convertible_v<executor_of<Given>, asio::any_io_executor>;

  template <class Given>
  handler(asio::any_io_executor where, Given&& given)
      : asio::any_completion_handler<Signature>(std::forward<Given>(given)),
        where_(std::move(where)),
        has_other_(!comparable<std::decay_t<Given>>) {}

  template <class Given>
  static asio::any_io_executor where_of(Given const& given) {
    if constexpr (comparable<Given>)
      return asio::associated_executor<Given, asio::any_io_executor>::get(given, asio::any_io_executor());
    else
      return {};
  }

  asio::any_io_executor where_;
  bool has_other_;
};

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

// The executor is that of the handler inside.
template <class Signature, class Candidate>
struct boost::asio::associated_executor<latchkey::detail::handler<Signature>, Candidate>
    : associated_executor<any_completion_handler<Signature>, Candidate> {};
