#pragma once

#include <algorithm>

namespace latchkey::detail {

// All clients hear at once that a lock was released. Who had it lately lets those try first who have waited for longer:
// so they have it in turn, and do not all ask for it at the same time. Source: docs/safety.md, section 4.
class rotation {
 public:
  // The server granted it to this client.
  void had() { heard_ = 0; }
  // This client released it, and so many clients, itself included, heard of that.
  void released_to(int listeners) { listeners_ = listeners; }
  // It was released, here or elsewhere.
  void heard() { heard_ = std::min(heard_ + 1, listeners_); }
  // How many have waited for longer, if all who listened wait.
  int ahead() const { return std::min(listeners_ - heard_, most); }
  // Since this client had it others have, or could have.
  bool went_on() const { return heard_ > 1; }

 private:
  static constexpr int most = 8;  // who listens need not wait

  int listeners_ = 0;
  int heard_ = 0;
};

}  // namespace latchkey::detail
