#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace latchkey::detail {

// How far the end of a client has come, and who waits for it. Guarded by the client's mutex.
class client_end {
 public:
  using waiter = std::function<void()>;

  // True: nobody had begun it.
  bool begin() { return !std::exchange(begun_, true); }
  bool begun() const { return begun_; }

  // Asked after every step. True, once: it was begun, and nothing is left to be said.
  template <class Quiet>
  bool ripe(Quiet const& quiet) {
    if (!begun_ || finishing_ || !quiet()) return false;
    return finishing_ = true;
  }
  // The sockets are being closed, or are not to be made any more.
  bool finishing() const { return finishing_; }
  // Nothing can be said any more.
  void cut_short() { begun_ = finishing_ = true; }

  // True, once: all sockets are closed. `told` are those who wait for that.
  bool finish(std::vector<waiter>& told) {
    if (finished_) return false;
    finished_ = finishing_ = true;
    told.swap(waiters_);
    return true;
  }
  bool over() const { return finished_; }
  // False: it is over already.
  bool wait(waiter& done) {
    if (finished_) return false;
    waiters_.push_back(std::move(done));
    return true;
  }

 private:
  bool begun_ = false;
  bool finishing_ = false;
  bool finished_ = false;
  std::vector<waiter> waiters_;
};

}  // namespace latchkey::detail
