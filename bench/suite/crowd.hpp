#pragma once

#include <latchkey/client.hpp>
#include <suite/rounds.hpp>

#include <boost/asio/io_context.hpp>

#include <vector>

namespace bench {

// What many callers did in some time.
struct crowd_result {
  double per_second = 0;     // pairs of all together
  std::vector<double> each;  // pairs of every caller
  double jain() const;
};

// Every coroutine takes the lock of its number, modulo how many there are, again and again. The client lives on `io`,
// which this thread runs.
crowd_result crowd_of_coroutines(boost::asio::io_context& io, std::vector<latchkey::distributed_lock> const& locks,
                                 int callers, double seconds);
// The same with threads; the client has a thread of its own.
crowd_result crowd_of_threads(std::vector<latchkey::distributed_lock> const& locks, int callers, double seconds);

// A round of pairs by one coroutine, on such an executor.
side coroutine_side(std::string name, boost::asio::io_context& io, latchkey::distributed_lock const& lock);

}  // namespace bench
