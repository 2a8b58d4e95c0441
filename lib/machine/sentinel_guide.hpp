#pragma once

#include <machine/guide.hpp>
#include <machine/sentinel_scout.hpp>

namespace latchkey::detail {

// Sentinels know the master, which has all names.
class sentinel_guide final : public guide, private scout_user {
 public:
  sentinel_guide(context& shared, sentinels whom, guided& servers);

  shard& of(std::string_view) override { return only(); }
  std::uint64_t epoch_of(node_address const& at) const override {
    return routes_.empty() || routes_.now().at != at ? 0 : routes_.now().epoch;
  }
  bool one_for_all() const override { return true; }
  void turn(io_actions& io) override { scout_.turn(io, need()); }
  scout_rounds& scout() override { return scout_; }
  void misled(shard&) override { scout_.distrust(); }
  home* redirected(shard&, redirection const&) override { return nullptr; }

 private:
  shard& only() const { return *servers_.shards().front(); }
  sentinel_scout::need need() const;

  routes::verdict on_claim(node_address const& at, std::uint64_t epoch, std::size_t replicas, instant asked) override;
  void on_no_claim(error_code const& why, std::string_view text, bool transient) override;
  node_address reached_by(node_address const& at) const override { return detail::reached_by(shared_, at); }

  context& shared_;
  guided& servers_;
  routes routes_;
  sentinel_scout scout_;
};

}  // namespace latchkey::detail
