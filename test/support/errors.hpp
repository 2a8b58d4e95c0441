#pragma once

#include <latchkey/error.hpp>
#include <support/patience.hpp>

#include <future>
#include <stdexcept>

namespace latchkey::test {

// The error that the call throws; none if it throws nothing. Anything but a lock_error goes through.
template <class Call>
error_code error_of(Call&& call) {
  try {
    static_cast<void>(call());
  } catch (lock_error const& error) {
    return error.code();
  }
  return {};
}

// The error that the call throws with all its words.
template <class Call>
lock_error thrown_by(Call&& call) {
  try {
    static_cast<void>(call());
  } catch (lock_error const& error) {
    return error;
  }
  return lock_error(error_code{});
}

// The call got no lock in its wait. If its last try was not answered by then it throws errc::timeout, which is no grant
// either; another error goes through.
template <class Call>
bool waits_in_vain(Call&& call) {
  try {
    return !call();
  } catch (lock_error const& error) {
    if (error.code() != errc::timeout) throw;
    return true;
  }
}

// The error of an operation that gave a future, which is waited for; none if it succeeded.
template <class T>
error_code error_in(std::future<T>&& future, std::chrono::milliseconds limit = patience) {
  if (future.wait_for(limit) != std::future_status::ready) throw std::runtime_error("the future is not ready in time");
  try {
    static_cast<void>(future.get());
  } catch (boost::system::system_error const& error) {
    return error.code();
  }
  return {};
}

// The value of a future, which is waited for.
template <class T>
T value_of(std::future<T>&& future, std::chrono::milliseconds limit = patience) {
  if (future.wait_for(limit) != std::future_status::ready) throw std::runtime_error("the future is not ready in time");
  return future.get();
}

}  // namespace latchkey::test
