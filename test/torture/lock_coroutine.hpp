#pragma once

#include <torture/slot.hpp>

#include <boost/asio/awaitable.hpp>

namespace latchkey::torture {

// As run_lock_thread, with asynchronous calls.
asio::awaitable<void> run_lock_coroutine(slot& own);

}  // namespace latchkey::torture
