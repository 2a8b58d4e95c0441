#pragma once

#include <engine/attachment.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace latchkey::detail {

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
    for (auto const& [identity, one] : all_)
      if (auto found = one.lock()) made.push_back(std::move(found));
    return made;
  }

 private:
  std::map<std::string, std::weak_ptr<attachment>> all_;
  std::size_t sweep_at_ = 64;
};

}  // namespace latchkey::detail
