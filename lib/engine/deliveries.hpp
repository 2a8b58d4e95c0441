#pragma once

#include <engine/call.hpp>
#include <engine/guards.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/intrusive/list.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

namespace latchkey::detail {

// Where a handler runs, and by way of what it gets there.
struct handler_place {
  asio::any_io_executor by;
  asio::any_io_executor where;  // empty: `by`

  asio::any_io_executor const& runs() const { return where ? where : by; }
  // What has nothing of the user's in it goes there without a detour: by way of `by` it could outlive `where`. A system
  // executor never ends, and would run it on a thread of its own.
  asio::any_io_executor const& takes() const { return where.target<asio::system_executor>() ? by : runs(); }
  template <class Function>
  void post(Function&& function) const {
    if (!where) return asio::post(by, std::forward<Function>(function));
    asio::post(by, asio::bind_executor(where, std::forward<Function>(function)));
  }
};

// A call with a handler. It keeps itself alive until that was called, or destroyed.
struct handled_call : call {
  // Null: on an executor that cannot be posted to.
  virtual handler_place const* place() const noexcept = 0;
  // It is the executor that the client was given, as most are: see deliveries::spot.
  virtual bool usual() const noexcept { return false; }
  // Both may destroy the call. What the handler throws comes out.
  virtual void call_handler() = 0;
  virtual void forget() noexcept = 0;

 protected:
  ~handled_call() = default;
};

// The completed calls of a client on the way to their handlers. Each is posted, which takes memory and mostly wakes a
// thread up, except those that are completed while a handler of the client runs on the same thread, for the same
// executor: they stand in a queue, which that thread goes on with when the handler has come back. Behind a queue that
// is not empty there is always a *look* in the hands of the executor, which goes on with it where nobody else does: the
// handler waits for another one, runs the executor itself, or throws.
class deliveries : public std::enable_shared_from_this<deliveries> {
 public:
  // So many handlers follow another one at most before the executor has its turn.
  static constexpr int most_in_a_row = 16;

  deliveries() = default;
  deliveries(deliveries const&) = delete;
  deliveries& operator=(deliveries const&) = delete;

  // False: it is to be posted. Any thread; calls no handler.
  bool keep(handled_call& ended) noexcept;
  // What is completed now has none before it that it could overtake.
  bool empty();

  // One more that was posted, one of them less: its executor runs it, or it is destroyed.
  void posted() noexcept { posted_.fetch_add(1, std::memory_order_relaxed); }
  void arrived() noexcept { posted_.fetch_sub(1, std::memory_order_relaxed); }

  // On the executor of its handler: calls that, and those that were completed meanwhile.
  void run(handled_call& first);

 private:
  class row;
  class look;

  // Where handlers run. To compare executors takes long, and is not needed for the usual ones.
  struct spot {
    bool is_of(handled_call const& call) const noexcept {
      return (usual && call.usual()) || where == call.place()->runs();
    }
    friend bool operator==(spot const& a, spot const& b) noexcept { return (a.usual && b.usual) || a.where == b.where; }

    asio::any_io_executor where;
    bool usual = false;
  };

  void go_on(spot const& where);
  handled_call* take(spot const& where) noexcept;
  void on_look();
  void dropped() noexcept;
  void post_look(asio::any_io_executor const& to) noexcept;

  fork_guard const forks_;
  std::atomic<std::size_t> posted_{0};

  std::mutex mutex_;  // guards what follows
  boost::intrusive::list<operation> queue_;
  spot where_;         // of the queue and of the look; empty without both
  bool look_ = false;  // has been posted, and has not begun
};

}  // namespace latchkey::detail
