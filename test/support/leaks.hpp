#pragma once

#include <support/raw_redis.hpp>

#include <string>

namespace latchkey::test {

// What clients that are gone have left on a server, in words: connections, subscriptions, and keys that stay for ever
// although they stand for a hold, a waiter or a request. Empty: nothing. Waits for connections that are just ending.
std::string what_is_left(raw_redis& server);

}  // namespace latchkey::test
