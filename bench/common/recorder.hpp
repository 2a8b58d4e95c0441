#pragma once

#include <common/bare_client.hpp>
#include <support/redis_server.hpp>

#include <functional>
#include <vector>

namespace bench {

// The script calls that clients on TCP sent to each of these servers while `what` ran.
std::vector<std::vector<command_words>> record(std::vector<latchkey::test::redis_server const*> const& servers,
                                               std::function<void()> const& what);

}  // namespace bench
