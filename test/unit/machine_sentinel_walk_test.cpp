#include <support/catch.hpp>
#include <support/patience.hpp>
#include <support/unit/failover_walk.hpp>

#include <string>
#include <utility>
#include <vector>

namespace machine_sentinel_walk {

using namespace latchkey;
using namespace latchkey::test;

namespace {

class sentinel_walk final : public failover_walk {
 public:
  sentinel_walk(std::uint64_t seed, int needed, bool exclusive)
      : failover_walk(seed, needed, exclusive, world::known::by_sentinel) {
    w_.sentinel_count = 3;
    w_.add_server();  // so that a world knows that what one server says is not all
    w_.resolve_to(w_.server);
    become_master(w_.server);
    watch(w_.server);
  }

 private:
  void become_master(stepped_server& one) {
    master_ = &one;
    one.redis.read_only = false;
    copy_ = one.redis.data;
    linked_ = true;
  }

  std::string before(stepped_server& one, stepped_server::words const& command) override {
    if (command[0] == "WAIT") {
      linked_ = linked_ || w_.random(3) == 0;
      bool const all = &one == master_ && linked_;
      if (all) copy_ = one.redis.data;
      one.redis.synced_replicas = all ? replicas : w_.random(replicas);
    }
    return {};
  }

  void befall_servers() override {
    switch (w_.random(16)) {
      case 0: return fail_over();
      case 1: linked_ = !linked_; return;
      case 2: return master_->flush_scripts();
      case 3:
      case 4: copy_ = master_->redis.data; return;
      case 5: master_->run_left_behind(); return;
      case 6:
      case 7: return there_and_back();
      case 8: return fail_over_twice();
      case 9:
      case 10: linked_ = false; return;
      default: return test::sentinels::hear(w_, any_sentinel(), any_sentinel(), w_.random(2) == 0);
    }
  }

  std::size_t any_sentinel() { return w_.random(w_.sentinel_count); }

  // Nobody has heard of the one between.
  void there_and_back() {
    if (deposed_ || failovers_ >= most_failovers) return;
    promote_to(*master_, *master_, copy_);
    test::sentinels::elect(w_, *master_, any_sentinel(), false);
    test::sentinels::elect(w_, *master_, any_sentinel(), w_.random(4) == 0);
    master_->hang_up();
    become_master(*master_);
  }

  void fail_over_twice() {
    if (deposed_) return;
    fail_over();
    for (auto i = w_.random(12); i > 0; --i) step();
    end_of_deposed();
    fail_over();
  }

  void fail_over() {
    if (deposed_ || failovers_ >= most_failovers) return end_of_deposed();
    stepped_server& old = *master_;
    bool const back = replica_ && w_.random(3) > 0;
    stepped_server& next = back ? *std::exchange(replica_, nullptr) : w_.add_server();
    promote_to(next, old, copy_);
    if (!back) {
      watch(next);
      w_.resolve_to(old);  // until it is elected
    }
    test::sentinels::elect(w_, next, any_sentinel(), w_.random(2) == 0);
    deposed_ = &old;
    become_master(next);
    if (w_.random(2) == 0) end_of_deposed();
  }

  // Whoever is connected hears of it. It is dead; or a replica, and may be promoted again, when what somebody else kept
  // on the way there may still arrive.
  void end_of_deposed() {
    auto* const old = std::exchange(deposed_, nullptr);
    if (!old) return;
    old->redis.read_only = true;
    if (w_.random(2) == 0) return old->restart(false);
    old->hang_up();
    replica_ = old;
  }

  void heal() override {
    end_of_deposed();
    test::sentinels::tell_all(w_);
    linked_ = true;
  }

  stepped_server* master_of(std::string const&) override { return master_; }

  std::vector<std::string> ghosts() override {
    std::vector<std::string> made;
    for (auto const& one : master_->all())
      if (one.find("/client") != one.npos) made.push_back(one);
    return made;
  }

  stepped_server* master_ = nullptr;
  stepped_server* deposed_ = nullptr;  // goes on, and does not know it
  stepped_server* replica_ = nullptr;  // it was a master
  model::keyspace copy_;               // what the next master would have
  bool linked_ = true;                 // replicas follow
};

}  // namespace

TEST_CASE("walk: failovers behind sentinels find two holders where one replica has confirmed a grant",
          "[unit][machine]") {
  if (slowness > 1) return;  // sanitizers look for other faults
  CHECK(finds_two_holders<sentinel_walk>(5'000));
}

TEST_CASE("walk: failovers behind sentinels, every replica having confirmed each grant", "[unit][machine]") {
  walk_failovers<sentinel_walk>(-1);
}

TEST_CASE("walk: failovers behind sentinels, one replica having confirmed: all comes to rest", "[unit][machine]") {
  walk_failovers<sentinel_walk>(0);
}

TEST_CASE("walk: failovers behind sentinels, no replica asked: all comes to rest", "[unit][machine]") {
  walk_failovers<sentinel_walk>(failover_walk::unasked);
}

}  // namespace machine_sentinel_walk
