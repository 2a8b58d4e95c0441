#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace latchkey::detail {

// Something of a higher floor that belongs to a client, is found there by its identity, and is told of its end.
class attachment {
 public:
  virtual ~attachment() = default;
  // All outside all mutexes, on any thread, perhaps more than once.
  // The client begins to close, on the calling thread; what is released from now on still leaves.
  virtual void closing() noexcept = 0;
  // The calling thread ends: what it holds by no lease is renewed no longer.
  virtual void thread_ended() noexcept = 0;
  // Nothing leaves any more.
  virtual void closed() noexcept = 0;
};

// The attachments of a client by their identities. Guarded by its mutex.
class attachments {
 public:
  // Made first if there is none alive.
  std::shared_ptr<attachment> find(std::string const& identity,
                                   std::function<std::shared_ptr<attachment>()> const& make) {
    if (all_.size() >= sweep_at_) {
      std::erase_if(all_, [](auto const& entry) { return entry.second.expired(); });
      sweep_at_ = 2 * all_.size() + 64;
    }
    auto& known = all_[identity];
    auto found = known.lock();
    if (!found) known = found = make();
    return found;
  }

  std::vector<std::shared_ptr<attachment>> alive() const {
    std::vector<std::shared_ptr<attachment>> made;
    for (auto const& [identity, attachment] : all_)
      if (auto found = attachment.lock()) made.push_back(std::move(found));
    return made;
  }

 private:
  std::map<std::string, std::weak_ptr<attachment>> all_;
  std::size_t sweep_at_ = 64;
};

}  // namespace latchkey::detail
