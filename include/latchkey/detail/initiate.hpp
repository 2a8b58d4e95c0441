#pragma once

#include <latchkey/boost_guard.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/system_executor.hpp>

#include <type_traits>
#include <utility>

namespace latchkey {
namespace asio = boost::asio;
}

namespace latchkey::detail {

// A handler of any type, and its executor: an any_completion_handler gives that only in a form that can be compared,
// but not be posted to, and takes memory for it.
template <class Signature>
class handler : public asio::any_completion_handler<Signature> {
  template <class Given, class Candidate = asio::any_io_executor>
  using executor_of = typename asio::associated_executor<Given, Candidate>::type;

  struct place {
    asio::any_io_executor where;
    bool other = false;
  };

 public:
  template <class Given>
  requires(!std::is_same_v<std::decay_t<Given>, handler>) explicit handler(Given&& given)
      : handler(place_of<std::decay_t<Given>>(given), std::forward<Given>(given)) {}

  // Empty: it has none, or, if has_other(), one of another sort or one that is made from that of the client.
  asio::any_io_executor const& where() const noexcept { return place_.where; }
  bool has_other() const noexcept { return place_.other; }

 private:
  template <class Given>
  static constexpr bool comparable = std::is_convertible_v<executor_of<Given>, asio::any_io_executor>;

  // The handler's own, whatever it would be given.
  template <class Given>
  static constexpr bool own = std::is_same_v<executor_of<Given>, executor_of<Given, asio::system_executor>>;

  template <class Given>
  handler(place at, Given&& given)
      : asio::any_completion_handler<Signature>(std::forward<Given>(given)), place_(std::move(at)) {}

  template <class Given>
  static place place_of(Given const& given) {
    if constexpr (!comparable<Given>) {
      return {{}, true};
    } else if constexpr (own<Given>) {
      return {asio::associated_executor<Given, asio::any_io_executor>::get(given, asio::any_io_executor()), false};
    } else {
      asio::any_io_executor const some = asio::system_executor();
      return {{}, asio::associated_executor<Given, asio::any_io_executor>::get(given, some) != some};
    }
  }

  place place_;
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

// The same for what begins with a function of the library, which is given copies of the key and the arguments.
template <class Signature, class Token, class Key, class... Args>
auto initiate_on(asio::any_io_executor executor, Key const& of, void (*start)(Key const&, handler<Signature>, Args...),
                 Token& token, std::type_identity_t<Args>... args) {
  return initiate<Signature>(
      std::move(executor), token,
      [key = of, start, ... args = std::move(args)](handler<Signature> done) { start(key, std::move(done), args...); });
}

}  // namespace latchkey::detail

// The executor is that of the handler inside.
template <class Signature, class Candidate>
struct boost::asio::associated_executor<latchkey::detail::handler<Signature>, Candidate>
    : associated_executor<any_completion_handler<Signature>, Candidate> {};
