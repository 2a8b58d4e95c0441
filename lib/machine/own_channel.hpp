#pragma once

#include <machine/context.hpp>
#include <machine/subscriptions.hpp>

#include <string>

namespace latchkey::detail {

// What wakes one waiter of a kind whose waiters stand in a queue on the server (kind::traits::own_channel): a channel
// and a timer for this owner alone, as long as it waits.
class own_channel final : public listener {
 public:
  own_channel(context& shared, owner_state& of, std::string channel);
  ~own_channel();

  void on_confirmed() override;
  void on_message(std::string_view payload) override;
  void on_refused() override;

  bool dirty = false;  // something was heard that no try has followed yet
  timer_node hint;     // when it tries again without a message

 private:
  context& shared_;
  owner_state& of_;
  std::string const channel_;
};

}  // namespace latchkey::detail
