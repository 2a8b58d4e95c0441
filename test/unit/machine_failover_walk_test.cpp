// Walks at random through failovers: calls, lost connections, replicas that lag and masters that are replaced, in any
// order, by clients who hear of it at different times. What the new master has is a beginning of what the old one did.
// With min_synced_replicas of all, and one failover at a time, nobody ever believes to hold what somebody else does
// (docs/safety.md, F1 to F4, F7, F8). Each seed has a kind of lock. Which seeds: support/unit/walks.hpp.
#include <support/catch.hpp>
#include <support/patience.hpp>
#include <support/unit/transfers.hpp>
#include <support/unit/walks.hpp>
#include <wire/cluster.hpp>
#include <wire/kinds.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace machine_failover_walk {

using namespace latchkey;
using namespace latchkey::test;
using namespace std::chrono_literals;

namespace {

constexpr int moves = 160;
constexpr std::uint64_t most_steps = 24;  // between two of them
constexpr int until_asks_arrive = 300;
constexpr int most_failovers = 6;  // of a walk
constexpr std::array<char const*, 3> names{"k", "other", "{k}2"};
constexpr std::size_t clients = 3;
constexpr std::size_t replicas = 2;
constexpr milliseconds most_skew{200};
constexpr milliseconds longest_lease{20'500};

config settings_of(int needed, std::uint64_t seed) {
  config made;
  made.lock_watchdog_timeout = 3s;
  made.timeout = 1s;
  made.connect_timeout = 1s;
  made.retry_delay = 100ms;
  made.scan_interval = 1s;
  made.replicas_sync_timeout = 500ms;
  made.min_synced_replicas = needed;
  made.clock_margin = most_skew;
  made.local_turns = seed / 8 % 2 == 1;
  made.local_handoff = {.max_streak = 3, .max_time = 50ms, .warm_up = warm_ups[seed / 16 % warm_ups.size()]};
  return made;
}

detail::kind const& kind_of(std::uint64_t seed) {
  detail::kind const* const all[] = {&detail::reentrant_kind(),  &detail::non_reentrant_kind(), &detail::spin_kind(),
                                     &detail::fenced_kind(),     &detail::plain_kind(),         &detail::fair_kind(),
                                     &detail::read_write_kind(), &detail::reentrant_kind()};
  return *all[seed % std::size(all)];
}

bool lost_more_than_releases(model::keyspace& was, model::keyspace& copy) {
  auto const keys = was.keys();
  return std::any_of(keys.begin(), keys.end(), [&](auto const& key) {
    auto const *there = was.find(key), *copied = copy.find(key);
    return !copied || copied->ends != there->ends || copied->holds != there->holds;
  });
}

task* any(world& w, bool (*fits)(task&)) {
  std::vector<task*> all;
  for (auto const& one : w.tasks())
    if (fits(*one)) all.push_back(one.get());
  return all.empty() ? nullptr : all[w.random(all.size())];
}

bool waits(task& one) { return one.what == task::type::acquire && !one.done(); }
bool held(task& one) { return one.granted() && !one.ended; }
bool kept(task& one) { return held(one) && !one.shown.lost; }

// Callers and connections, whatever servers there are.
class walk {
 public:
  walk(std::uint64_t seed, int needed, bool exclusive, world::known how)
      : w_(settings_of(needed, seed), clients, how),
        kind_(kind_of(seed)),
        all_confirm_(needed < 0),
        adopts_(seed / 64 % 4 == 1) {
    w_.any_order = seed * 2 + 1;
    w_.faulty = true;
    w_.late_bytes = false;
    w_.exclusive = exclusive;
  }
  virtual ~walk() = default;

  void play() {
    for (int i = 0; i < moves; ++i) {
      if (adopts_) take_up();
      switch (w_.random(12)) {
        case 0:
        case 1: call(); break;
        case 2: fault(); break;
        case 3:
        case 4: befall_servers(); break;
        case 5:
          if (w_.random(2) == 0) w_.wait_for_next();
          break;
        default:
          for (auto steps = w_.random(most_steps); steps > 0; --steps) step();
      }
      look();
    }
    granted_ = granted(task::type::acquire);
    end();
  }

  int failovers() const { return failovers_; }
  std::size_t granted() const { return granted_; }
  std::size_t adopted() const { return granted(task::type::adopt); }

 protected:
  virtual void befall_servers() = 0;
  virtual void heal() = 0;
  // The one that has the name, if that is certain.
  virtual stepped_server* master_of(std::string const& name) = 0;
  // All holds of clients that servers still show.
  virtual std::vector<std::string> ghosts() = 0;
  // Before whatever the server runs. The answer: what it says instead.
  virtual std::string before(stepped_server& one, stepped_server::words const& command) = 0;

  void watch(stepped_server& one) {
    one.redis.replicas = replicas;
    one.elsewhere = [this, &one, usual = one.elsewhere](stepped_server::words const& command, bool asking) {
      auto said = before(one, command);
      return said.empty() && usual ? usual(command, asking) : said;
    };
  }

  // The clock of the next master may be another one, and what is copied is a time of day.
  void promote_to(stepped_server& next, stepped_server const& from, model::keyspace const& copy) {
    ++failovers_;
    auto const ahead = clock_of(next) - clock_of(from);
    next.redis.data = copy;
    for (auto const& key : next.redis.data.keys())
      if (auto* const found = next.redis.data.find(key); found && found->ends != model::keyspace::forever)
        found->ends -= ahead;
  }

  bool step() {
    bool const any = w_.step();
    look();
    return any;
  }

  world w_;
  int failovers_ = 0;

 private:
  void look() {
    if (all_confirm_) look_at_masters();
  }

  std::size_t granted(task::type what) const {
    auto const& all = w_.tasks();
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [&](auto const& one) { return one->what == what && one->granted(); }));
  }

  // The master shows what is believed, whoever it is: so many holds, for so long.
  void look_at_masters() {
    std::map<std::pair<std::string, std::string>, std::int64_t> counts;  // by key and field
    for (auto const& one : w_.tasks()) {
      stepped_server* const master = one->trusted(w_.now) ? master_of(one->key) : nullptr;
      if (!master) continue;
      detail::kind const& which = *one->which;
      auto const field = transfers::shown_field(w_, *one);
      auto& count = ++counts[{one->key, field}];
      if (w_.settings.local_turns && which.rules().turns) count = 1;
      if (master->count(one->key, field) < count) w_.fail("the master has fewer holds than believed of " + one->label);
      // A clock that is ahead may have taken something off what no renewal has put right yet.
      if (detail::after(master->last_instant(one->key), most_skew) < one->shown.until())
        w_.fail("the master forgets the hold of " + one->label);
    }
  }

  void call() {
    if (adopts_ && w_.random(2) == 0) return transfer();
    std::uint64_t const owner = 1 + w_.random(3);
    how options{.which = &kind_};
    if (kind_.rules().modes > 1) options.mode = static_cast<unsigned char>(w_.random(2));
    options.name = names[w_.random(names.size())];
    options.client = w_.random(clients);
    options.direct = w_.random(3) == 0;
    if (w_.random(3) == 0) options.wait = milliseconds(w_.random(6'000));
    if (w_.random(3) == 0) options.lease = milliseconds(400 + w_.random(8'000));
    switch (w_.random(8)) {
      case 0:
      case 1:
      case 2: w_.acquire(owner, options); return;
      case 3: w_.once(owner, options); return;
      case 4:
        if (task* one = any(w_, held)) w_.release(*one, w_.random(2) == 0);
        return;
      case 5:
        if (task* one = any(w_, held)) w_.drop(*one);
        return;
      case 6:
        if (task* one = any(w_, kept)) w_.extend(*one, milliseconds(500 + w_.random(20'000)), w_.random(2) == 0);
        return;
      default:
        if (task* one = any(w_, waits)) w_.cancel(*one);
    }
  }

  // Owners of their own: an owner that comes back to what it has detached would hold it beside the next one.
  void transfer() {
    switch (w_.random(4)) {
      case 0: {
        how options{.name = names[w_.random(names.size())], .client = w_.random(clients), .which = &kind_};
        if (kind_.rules().modes > 1) options.mode = static_cast<unsigned char>(w_.random(2));
        if (w_.random(2) == 0) options.lease = milliseconds(400 + w_.random(8'000));
        options.wait = milliseconds(w_.random(6'000));
        w_.acquire(++last_owner_, options);
        return;
      }
      case 1:
        if (task* one = any(w_, [](task& held) { return kept(held) && held.owner > first_own; })) detach(*one);
        return;
      default:
        if (detached_.empty()) return;
        std::swap(detached_[w_.random(detached_.size())], detached_.back());
        asking_.push_back({detached_.back(), &transfers::ask(w_, *detached_.back(), w_.random(clients))});
        detached_.pop_back();
    }
  }

  void detach(task& held) {
    auto const origin = origins_.find(&held);
    if (!transfers::detach(w_, held).owner.empty())
      detached_.push_back(origin == origins_.end() ? &held : origin->second);
  }

  // What the server still showed when it was asked, which may be long ago.
  void take_up() {
    if (asking_.empty() || w_.random(2) > 0) return;
    auto const [origin, asked] = asking_.front();
    if (!asked->done()) return;
    asking_.pop_front();
    if (asked->error || asked->value <= 0) return;
    auto const owner = asked->client == origin->client ? origin->owner : ++last_owner_;
    origins_[&transfers::take_up(w_, owner, *origin, *asked)] = origin;
  }

  void fault() {
    if (w_.random(3) > 0) return;
    constexpr fate fates[] = {fate::gone, fate::ran, fate::late, fate::silent};
    auto const as = static_cast<role>(w_.random(4));
    w_.lose(as, as == role::scout ? fate::gone : fates[w_.random(4)], w_.random(clients));
  }

  void end() {
    heal();
    for (auto const& one : w_.tasks())  // or what is left ends while they wait
      if (waits(*one) && w_.random(4) > 0) w_.cancel(*one);
    w_.late_bytes = true;
    w_.resolve();
    // What was detached ends by time, and what was adopted and released may be there again until then.
    if (adopts_) w_.pass(longest_lease + 1s);
    // Whoever has nothing to do with a server does not ask who it is; then each has heard of the last failover.
    std::vector<task*> all;
    for (std::size_t i = 0; i < clients; ++i)
      for (std::string const name : {"{k}w", "{other}w"})
        all.push_back(&w_.acquire(8, {.name = name + std::to_string(i), .client = i}));
    for (task* one : all) w_.await(*one);
    w_.pass(1'100ms);
    for (task* one : all) w_.release(*one);
    w_.resolve();
    look_for_ghosts();
    for (std::size_t i = 0; i < clients; ++i)
      for (auto const* name : names) {
        task& last = w_.acquire(9, {.name = name, .client = i, .which = &kind_, .mode = kind_.rules().modes > 1});
        w_.await(last);
        w_.release(last);
      }
    w_.resolve();
    look_for_ghosts();
  }

  void look_for_ghosts() {
    for (auto const& left : ghosts()) w_.fail("a ghost is left: " + left);
  }

  // By how much it is ahead of the slowest one.
  std::int64_t clock_of(stepped_server const& one) {
    auto const [at, added] = clocks_.try_emplace(&one);
    if (added) at->second = static_cast<std::int64_t>(w_.random(static_cast<std::uint64_t>(most_skew.count()) + 1));
    return at->second;
  }

  detail::kind const& kind_;
  bool const all_confirm_;  // every replica
  bool const adopts_;
  std::size_t granted_ = 0;  // before the end
  static constexpr std::uint64_t first_own = 100;
  std::uint64_t last_owner_ = first_own;
  struct question {
    task const* origin;  // who was granted it
    task const* asked;
  };
  std::vector<task const*> detached_;  // by their origins
  std::deque<question> asking_;
  std::map<task const*, task const*> origins_;
  std::map<stepped_server const*, std::int64_t> clocks_;
};

class sentinel_walk final : public walk {
 public:
  sentinel_walk(std::uint64_t seed, int needed, bool exclusive)
      : walk(seed, needed, exclusive, world::known::by_sentinel) {
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
      default: return sentinels::hear(w_, any_sentinel(), any_sentinel(), w_.random(2) == 0);
    }
  }

  std::size_t any_sentinel() { return w_.random(w_.sentinel_count); }

  // Nobody has heard of the one between.
  void there_and_back() {
    if (deposed_ || failovers_ >= most_failovers) return;
    promote_to(*master_, *master_, copy_);
    sentinels::elect(w_, *master_, any_sentinel(), false);
    sentinels::elect(w_, *master_, any_sentinel(), w_.random(4) == 0);
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
    sentinels::elect(w_, next, any_sentinel(), w_.random(2) == 0);
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
    sentinels::tell_all(w_);
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

// Two shards, between which the slot of `k` moves, and a master that has no slots and hears of all that.
class cluster_walk final : public walk {
 public:
  cluster_walk(std::uint64_t seed, int needed, bool exclusive) : walk(seed, needed, exclusive, world::known::by_nodes) {
    w_.add_server();
    w_.add_server();
    for (std::size_t i = 0; i < 2; ++i) {
      watch(nodes::at(w_, i));
      sides_[i].node = i;
    }
  }

 private:
  // Was its master, goes on, and does not know it.
  struct deposed {
    std::size_t node = 0;
    model::keyspace passed_on{};
  };
  struct side {
    std::size_t node = 0;
    std::optional<std::size_t> replica{};  // was its master
    std::optional<deposed> before{};
    model::keyspace copy{};
    bool linked = true;
  };

  stepped_server& master(side const& of) { return nodes::at(w_, of.node); }
  void replicate(side& one) { one.copy = master(one).redis.data; }

  std::string before(stepped_server& one, stepped_server::words const& command) override {
    if (command[0] != "WAIT") return {};
    one.redis.synced_replicas = w_.random(replicas);
    for (side& of : sides_)
      if (&master(of) == &one && (of.linked || w_.random(3) == 0)) {
        of.linked = true;
        replicate(of);
        one.redis.synced_replicas = replicas;
      }
    return {};
  }

  void befall_servers() override {
    side& one = sides_[w_.random(2)];
    switch (w_.random(20)) {
      case 0: return fail_over(one);
      case 1: one.linked = !one.linked; return;
      case 2: return master(one).flush_scripts();
      case 3:
      case 4: return replicate(one);
      case 5:
      case 6: return move_on();
      case 7:
      case 8: return there_and_back(one);
      case 9: return fail_over_twice(one);
      case 10: master(one).run_left_behind(); return;
      case 11:
      case 12: one.linked = false; return;
      case 13: return end_of_deposed(one);
      default: return hear();
    }
  }

  std::size_t any_node() { return w_.random(last_ + 1); }

  void hear() {
    std::size_t const number = any_node();
    for (side& of : sides_)
      if (of.before && of.before->node == number) return end_of_deposed(of);
    w_.random(2) == 0 ? nodes::hear_all(w_, number) : nodes::hear(w_, number, any_node());
  }

  // Who was late to hear that a slot has left the node that is elected would hold on to its claim for ever:
  // docs/topologies.md.
  void elect_unheard() {
    hear_everything();
    hold_back_some();
  }

  void hold_back_some() {
    for (std::size_t i = 0; i <= last_; ++i)
      if (w_.random(2) == 0) nodes::hold_back(w_, i);
  }

  // What waits there for a WAIT is told, and ends with its connection.
  void end_of_deposed(side& of) {
    auto old = std::exchange(of.before, std::nullopt);
    if (!old) return;
    stepped_server& one = nodes::at(w_, old->node);
    if (w_.random(4) == 0) one.restart(true);
    nodes::hear_all(w_, old->node);
    if (lost_more_than_releases(one.redis.data, old->passed_on)) one.hang_up();
  }

  // Nobody has heard of the one between. A WAIT for what was lost ends with its connection.
  void there_and_back(side& of) {
    if (failovers_ >= most_failovers) return;
    if (half_moved_) move_on();
    end_of_deposed(of);
    bool const lost = lost_more_than_releases(master(of).redis.data, of.copy);
    promote_to(master(of), master(of), of.copy);
    elect_unheard();
    nodes::hear_all(w_, of.node);
    nodes::take_over(w_, of.node, of.node, false);
    if (lost || w_.random(2) == 0) master(of).hang_up();
    of.linked = true;
    replicate(of);
  }

  void fail_over_twice(side& of) {
    fail_over(of);
    for (auto i = w_.random(12); i > 0; --i) step();
    fail_over(of);
  }

  // MIGRATE waits for no replica: what moves is taken to be everywhere at once. It begins when all masters have heard
  // of the last move, and what that has sent on by ASK has arrived: docs/topologies.md.
  void move_on() {
    for (side& one : sides_) end_of_deposed(one);
    side const& to = sides_[0].node == nodes::owner_of(w_, detail::slot_of("k")) ? sides_[1] : sides_[0];
    if (!half_moved_) {
      hear_everything();
      for (int i = 0; i < until_asks_arrive && step(); ++i) {
      }
      nodes::begin_move(w_, "k", to.node);
      if (w_.random(2) == 0) nodes::move_keys(w_, "k", to.node);
    } else {
      hold_back_some();
      nodes::move(w_, "k", to.node);
    }
    half_moved_ = !half_moved_;
    for (side& one : sides_) replicate(one);
  }

  // A replica does not know which slots are half moved: docs/topologies.md.
  void fail_over(side& of) {
    if (failovers_ >= most_failovers) return;
    if (half_moved_) move_on();
    end_of_deposed(of);
    bool const back = of.replica && w_.random(3) > 0;
    bool const gone = w_.random(2) == 0;
    std::size_t const next = back ? *of.replica : ++last_;
    stepped_server& one = back ? nodes::at(w_, next) : w_.add_server();
    promote_to(one, master(of), of.copy);
    if (!back) watch(one);
    elect_unheard();
    std::size_t const before = std::exchange(of.node, next);
    gone ? nodes::hear_all(w_, before) : nodes::hold_back(w_, before);
    nodes::take_over(w_, before, next, gone);
    of.replica = before;
    if (!gone) of.before = {before, of.copy};
    if (w_.random(2) == 0) end_of_deposed(of);
    of.linked = true;
    replicate(of);
  }

  void hear_everything() {
    for (side& one : sides_) end_of_deposed(one);
    for (std::size_t i = 0; i <= last_; ++i) nodes::hear_all(w_, i);
  }

  void heal() override {
    if (half_moved_) move_on();
    hear_everything();
    for (side& one : sides_) one.linked = true;
  }

  // What a node has of slots that are not its own is not there.
  std::vector<std::string> ghosts() override {
    std::vector<std::string> made;
    for (side const& of : sides_)
      for (auto const& one : master(of).all())
        if (one.find("/client") != one.npos &&
            nodes::owner_of(w_, detail::slot_of(one.substr(0, one.find('/')))) == of.node)
          made.push_back(one);
    return made;
  }

  stepped_server* master_of(std::string const& name) override {
    return half_moved_ ? nullptr : &nodes::at(w_, nodes::owner_of(w_, detail::slot_of(name)));
  }

  side sides_[2];
  bool half_moved_ = false;
  std::size_t last_ = 2;
};

template <class Walk>
void walk_all(int needed) {
  seeds const all(400 / slowness);
  std::uint64_t failovers = 0, granted = 0, adopted = 0;
  all.each([&](std::uint64_t seed) {
    Walk one(seed, needed, needed < 0);
    one.play();
    failovers += static_cast<std::uint64_t>(one.failovers());
    granted += one.granted();
    adopted += one.adopted();
  });
  CHECK((all.one() || failovers > all.count() / 2));
  CHECK((all.one() || granted > 2 * all.count()));
  CHECK((all.count() < 400 || adopted > all.count() / 100));
  if (all.more_than_usual())
    WARN(all.count() << " walks, " << failovers << " failovers, " << granted << " grants, " << adopted << " adoptions");
}

// What walks look for is there to be found: with one replica that has it another one may be promoted.
template <class Walk>
bool finds_two_holders(std::uint64_t most) {
  for (std::uint64_t seed = 1; seed <= most; ++seed) {
    try {
      Walk(seed, 0, true).play();
    } catch (violation const& broken) {
      return std::string_view(broken.what()).find("two valid holders") != std::string_view::npos;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("walk: failovers find two holders where one replica has confirmed a grant", "[unit][machine]") {
  if (slowness > 1) return;  // sanitizers look for other faults
  CHECK(finds_two_holders<sentinel_walk>(5'000));
  CHECK(finds_two_holders<cluster_walk>(10'000));
}

TEST_CASE("walk: failovers behind sentinels, every replica having confirmed each grant", "[unit][machine]") {
  walk_all<sentinel_walk>(-1);
}

TEST_CASE("walk: failovers behind sentinels, one replica having confirmed: all comes to rest", "[unit][machine]") {
  walk_all<sentinel_walk>(0);
}

TEST_CASE("walk: failovers and moves in a cluster, every replica having confirmed each grant", "[unit][machine]") {
  walk_all<cluster_walk>(-1);
}

TEST_CASE("walk: failovers and moves in a cluster, one replica having confirmed: all comes to rest",
          "[unit][machine]") {
  walk_all<cluster_walk>(0);
}

}  // namespace machine_failover_walk
