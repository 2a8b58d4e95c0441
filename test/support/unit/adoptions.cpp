#include <support/unit/adoptions.hpp>
#include <support/unit/transfers.hpp>
#include <support/unit/walks.hpp>

#include <utility>

namespace latchkey::test {

void adoptions::call() {
  switch (w_.random(4)) {
    case 0: {
      how options{.name = names_[w_.random(names_.size())], .client = w_.random(clients_), .which = &kind_};
      if (kind_.rules().modes > 1) options.mode = static_cast<unsigned char>(w_.random(2));
      if (w_.random(2) == 0) options.lease = milliseconds(400 + w_.random(8'000));
      options.wait = milliseconds(w_.random(6'000));
      w_.acquire(++last_owner_, options);
      return;
    }
    case 1:
      if (task* one = any(w_, [](task& held) { return kept(held) && held.owner > first_owner; })) detach(*one);
      return;
    default:
      if (detached_.empty()) return;
      std::swap(detached_[w_.random(detached_.size())], detached_.back());
      asking_.push_back({detached_.back(), &transfers::ask(w_, *detached_.back(), w_.random(clients_))});
      detached_.pop_back();
  }
}

void adoptions::detach(task& held) {
  auto const origin = origins_.find(&held);
  if (!transfers::detach(w_, held).owner.empty())
    detached_.push_back(origin == origins_.end() ? &held : origin->second);
}

void adoptions::take_up() {
  if (asking_.empty() || w_.random(2) > 0) return;
  auto const [origin, asked] = asking_.front();
  if (!asked->done()) return;
  asking_.pop_front();
  if (asked->error || asked->value <= 0) return;
  auto const owner = asked->client == origin->client ? origin->owner : ++last_owner_;
  origins_[&transfers::take_up(w_, owner, *origin, *asked)] = origin;
}

}  // namespace latchkey::test
