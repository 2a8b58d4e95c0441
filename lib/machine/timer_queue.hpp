#pragma once

#include <base/instant.hpp>

#include <boost/intrusive/set.hpp>

namespace latchkey::detail {

// Something that is due at a time; `what` says what it is.
// A client has many of them: the colour of the tree's node stands in one of its pointers. Boost sets that bit when the
// node is linked. Optimised code asks whether the others are zero by `<= 1`, and memcheck warns of that.
struct timed : boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::safe_link>,
                                               boost::intrusive::optimize_size<true>> {
  enum class type : unsigned char {
    operation,
    hold,
    hint,
    own_hint,
    link,
    session,
    scout,
    linger,
    turn,
    watchdog,
    closing,
  };

  instant at = never;
  type what = type::operation;

  friend bool operator<(timed const& a, timed const& b) { return a.at < b.at; }
};

// One that lives inside what it belongs to.
struct timer_node : timed {
  void* of = nullptr;
};

// All that a client has to do later, earliest first. One timer of the system serves it.
class timer_queue {
 public:
  void set(timed& node, instant at) {
    if (node.is_linked()) {
      if (node.at == at) return;
      nodes_.erase(nodes_.iterator_to(node));
    }
    node.at = at;
    if (at != never) nodes_.insert(node);
  }
  void drop(timed& node) {
    if (node.is_linked()) nodes_.erase(nodes_.iterator_to(node));
  }
  instant first() const { return nodes_.empty() ? never : nodes_.begin()->at; }
  timed* front() { return nodes_.empty() ? nullptr : &*nodes_.begin(); }
  // The earliest node if it is due, taken out; else null.
  timed* take_due(instant now) {
    if (nodes_.empty() || nodes_.begin()->at > now) return nullptr;
    timed& node = *nodes_.begin();
    nodes_.erase(nodes_.begin());
    return &node;
  }
  // For a time that only ever moves on: a node that is due earlier stays, and is looked at again when it stands first.
  void set_lazily(timed& node, instant at) {
    if (!node.is_linked() || node.at > at) set(node, at);
  }
  void clear() { nodes_.clear(); }
  bool empty() const { return nodes_.empty(); }
  std::size_t size() const { return nodes_.size(); }

 private:
  boost::intrusive::multiset<timed> nodes_;
};

}  // namespace latchkey::detail
