#pragma once

#include <machine/owner_state.hpp>
#include <wire/kind.hpp>

#include <boost/container/small_vector.hpp>

namespace latchkey::detail {

// The owners who hold one name, as far as this client knows.
class holders {
 public:
  using list = boost::container::small_vector<owner_state*, 1>;

  explicit holders(kind::traits const& rules) : rules_(rules) {}

  // \throws std::bad_alloc: nothing has changed.
  void make_room();
  // A hold of this owner has begun or ended.
  void note(owner_state& one);

  bool empty() const { return all_.empty(); }
  // A copy: who is told of a loss may leave the list.
  list all() const { return all_; }
  instant latest_deadline() const;
  // Does what this owner holds keep others out of this side?
  bool excludes(owner_state const& one, unsigned char mode) const;
  // Has another owner what keeps this one out?
  bool keep_out(owner_state const& one, unsigned char mode) const;

 private:
  kind::traits const& rules_;
  list all_;
};

}  // namespace latchkey::detail
