#pragma once

#include <wire/kind.hpp>

namespace latchkey::detail {

// What the reentrant lock and its relatives share: a hash `name` with one field `uuid:owner` whose value is the hold
// count, the channel, the scripts and what they answer. A relative says where it differs.
class reentrant_family : public kind {
 public:
  // Scripts that `t` does not name are the reentrant lock's.
  explicit reentrant_family(traits t);

  // What stands before the name in channel().
  virtual std::string_view channel_prefix() const;
  std::string channel(std::string_view name, std::string_view field) const override;
  // Of those that acquire with the reentrant lock's script.
  script const* acquire_all() const final;
  void add_keys(item const& item, words& command) const override;
  void add_arguments(item const& item, words& command) const override;
  outcome read(ask what, item const& item, reply const& answer) const final;
  bool wakes(std::string_view message) const override;
  // An owner who holds it takes it again without queueing.
  admission admit(unsigned char mode, int const* live) const override;

 protected:
  // Of acquire, and of the new owner's half of a hand-off.
  virtual outcome read_grant(reply const& element) const;

 private:
  outcome read_acquire(item const& item, reply const& element) const;
  outcome read_hand_off(reply const& element) const;
};

// The same for an owner who may hold it once only: he is told so by the client, and nothing is sent.
class taken_once : public reentrant_family {
 public:
  using reentrant_family::reentrant_family;
  admission admit(unsigned char mode, int const* live) const final;
};

}  // namespace latchkey::detail
