#include <engine/core.hpp>
#include <engine/thread_holds.hpp>

#include <algorithm>
#include <vector>

namespace latchkey::detail {

namespace {

// The list below is gone. Without a destructor of its own, so that it can be asked until the thread's very end.
constinit thread_local bool over = false;

}  // namespace

class thread_holds::all {
 public:
  ~all() {
    over = true;
    for (auto const& holds : list_)
      if (holds->count_ > 0)
        if (auto const client = holds->core_.lock()) client->thread_ended();
  }

  thread_holds* find(core const& whose) noexcept {
    auto const found =
        std::find_if(list_.begin(), list_.end(), [&](auto const& holds) { return holds->of_ == &whose; });
    return found == list_.end() ? nullptr : found->get();
  }

  thread_holds& add(core& whose) {
    std::erase_if(list_, [](auto const& holds) { return holds->core_.expired(); });
    return *list_.emplace_back(new thread_holds(whose));
  }

  static all& mine() {
    thread_local all here;
    return here;
  }

 private:
  std::vector<std::unique_ptr<thread_holds>> list_;
};

thread_holds::thread_holds(core& whose) : of_(&whose), core_(whose.weak_from_this()) {}

thread_holds* thread_holds::known(core const& whose) noexcept {
  if (over) return nullptr;
  thread_holds* const found = all::mine().find(whose);
  // A client at the address of one that has gone.
  return found && !found->core_.expired() ? found : nullptr;
}

thread_holds* thread_holds::of(core& whose) {
  if (over) return nullptr;
  thread_holds* const found = known(whose);
  return found ? found : &all::mine().add(whose);
}

}  // namespace latchkey::detail
