#pragma once

#include <machine/operation.hpp>

#include <boost/intrusive/list.hpp>

#include <cstdint>

namespace latchkey::detail {

// The callers of one client who wait for a name, in the order of their arrival. Only the head talks to the server,
// unless each has a channel of its own.
class wait_queue {
 public:
  // A name is held in many copies: the size is kept beside the other small number.
  using list = boost::intrusive::list<operation, boost::intrusive::constant_time_size<false>>;
  using iterator = list::iterator;

  bool empty() const { return all_.empty(); }
  std::size_t size() const { return size_; }
  operation& head() { return all_.front(); }
  operation const& head() const { return all_.front(); }
  bool is_head(operation const& call) const { return call.queued && &all_.front() == &call; }
  // There is a head, it waits, and nothing of its owner is under way.
  bool head_idle() const;
  // Who came just before this one. \pre somebody did.
  operation const& before(operation& call) { return *std::prev(from(call)); }

  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  iterator from(operation& call) { return all_.iterator_to(call); }
  bool any_once() const { return once_ > 0; }
  // Where to look for calls without a wait. They are the last that came, if others wait.
  iterator first_once();

  void join(operation& call);
  // \pre it stands here.
  void leave(operation& call);

  // The server has said, or would say, that another has it.
  void note_busy() { ++busy_answers_; }
  bool busy_since_it_joined(operation const& call) const { return call.joined < busy_answers_; }
  // Of the call that joined last.
  std::uint64_t ticket() const { return tickets_; }

 private:
  list all_;
  std::uint32_t size_ = 0;
  std::uint32_t once_ = 0;  // calls without a wait
  std::uint64_t busy_answers_ = 0;
  std::uint64_t tickets_ = 0;
};

}  // namespace latchkey::detail
