#pragma once

#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>

#include <memory>
#include <type_traits>
#include <utility>

namespace latchkey::detail {

namespace asio = boost::asio;

// An executor that says when it is about to be used: before it runs something, and before somebody makes a timer or a
// socket on its context. `Starter` has a member begin() noexcept.
template <class Inner, class Starter>
class starting_executor {
 public:
  starting_executor(Inner inner, std::shared_ptr<Starter> starter) noexcept
      : inner_(std::move(inner)), starter_(std::move(starter)) {}

  friend bool operator==(starting_executor const& a, starting_executor const& b) noexcept {
    return a.starter_ == b.starter_ && a.inner_ == b.inner_;
  }

  template <class F>
  void execute(F&& f) const {
    inner_.execute(std::forward<F>(f));
    starter_->begin();
  }

  template <class Property>
  requires asio::can_query_v<Inner const&, Property>
  decltype(auto) query(Property const& property) const noexcept {
    using found = typename asio::query_result<Inner const&, Property>::type;
    if constexpr (std::is_convertible_v<found, asio::execution_context&>) starter_->begin();
    return asio::query(inner_, property);
  }

  template <class Property>
  requires asio::can_require_v<Inner const&, Property>
  auto require(Property const& property) const { return over(asio::require(inner_, property)); }
  template <class Property>
  requires asio::can_prefer_v<Inner const&, Property>
  auto prefer(Property const& property) const { return over(asio::prefer(inner_, property)); }

 private:
  template <class Other>
  starting_executor<Other, Starter> over(Other other) const {
    return {std::move(other), starter_};
  }

  Inner inner_;
  std::shared_ptr<Starter> starter_;
};

}  // namespace latchkey::detail
