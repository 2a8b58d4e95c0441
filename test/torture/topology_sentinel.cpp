#include <support/patience.hpp>
#include <support/sentinel_set.hpp>
#include <torture/history.hpp>
#include <torture/topology.hpp>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

namespace latchkey::torture {

char const* name_of(mishap what) {
  switch (what) {
    case mishap::asked: return "asked";
    case mishap::forced: return "forced";
    case mishap::killed: return "killed";
    case mishap::stopped: return "stopped";
    case mishap::cut: return "cut";
    case mishap::deaf: return "deaf";
    case mishap::moved: return "moved";
    case mishap::links: return "links";
    case mishap::taken: return "taken";
    case mishap::paused: return "paused";
  }
  return "?";
}

std::string name_of_log(test::redis_server const& one) { return "at-" + std::to_string(one.where().port); }

void pause_for(test::redis_server& one, milliseconds length) {
  one.pause();
  std::this_thread::sleep_for(length);
  one.resume();
}

namespace behind_sentinels {

using test::must_happen;
using test::raw_redis;

constexpr std::size_t nodes = 3, sentinels = 3;
constexpr milliseconds patient{60'000};  // else a busy machine looks like a dead server

std::string field(raw_redis::reply const& list, std::string_view name) {
  for (std::size_t i = 0; i + 1 < list.elements.size(); i += 2)
    if (list.elements[i].text == name) return list.elements[i + 1].text;
  return {};
}

// Empty from one that does not answer.
std::optional<raw_redis::reply> role_of(test::redis_server const& one) try {
  return one.admin().ok("ROLE");
} catch (std::runtime_error const&) {
  return {};
}

// A sentinel that makes a replica of it closes all its connections meanwhile.
template <class... Words>
void insist(test::redis_server const& one, Words const&... words) {
  auto const does_it = [&] {
    try {
      one.admin().ok(words...);
      return true;
    } catch (std::runtime_error const&) {
      return false;
    }
  };
  must_happen(look_until(does_it, test::patience), "a server does what it is told");
}

class several final : public topology {
 public:
  several()
      : set_({.down_after = patient,
              .server_arguments = {"--rdb-del-sync-files", "yes"},
              .sentinel_lines = {"sentinel failover-timeout m 2000"}}) {
    // Sentinels by themselves tell a master that was replaced after four times what lies between two announcements: 2 s
    // here, else 8. Sooner, and one that has not yet heard of a promotion takes it back.
    for (std::size_t i = 0; i < sentinels; ++i)
      set_.sentinel(i).admin().ok("SENTINEL", "DEBUG", "PING-PERIOD", 300, "INFO-PERIOD", 300, "ASK-PERIOD", 300,
                                  "PUBLISH-PERIOD", 500, "TILT-PERIOD", 1'000);
    heal();
  }

  std::string uri() const override { return set_.uri(); }

  std::vector<mishap> const& mishaps_by_weight() const override {
    using enum mishap;
    static std::vector<mishap> const all{asked,   asked, asked, asked, asked, asked, killed,
                                         stopped, cut,   cut,   deaf,  links, paused};
    return all;
  }

  void strike(mishap what, simulation::dice& by) override {
    if (set_.master() != master_) ++uninvited_, heal();
    successor_ = nodes;
    grace_ = milliseconds(by.between(100, 800));
    switch (what) {
      case mishap::killed: kill_master(); break;
      case mishap::stopped: stop_master(by); break;
      case mishap::cut: cut_and_replace(by); break;
      case mishap::deaf: replace_unheard(by); break;
      case mishap::links: set_.node(master_).admin().kill_clients("name=torture"); return;
      case mishap::paused: pause_for(set_.node(master_), milliseconds(by.between(50, 3'000))); return;
      default: ask();
    }
    heal();
    uninvited_ += successor_ != nodes && successor_ != master_;
  }

  void heal() override {
    for (std::size_t i = 0; i < sentinels; ++i) set_.sentinel(i).resume();
    deaf_ = sentinels;
    count_as_dead_after(patient);
    for (std::size_t i = 0; i < nodes; ++i) {
      auto& one = set_.node(i);
      one.pid() > 0 ? one.resume() : one.start();
      insist(one, "CONFIG", "SET", "masterauth", "");
    }
    test::stopwatch time;
    must_happen(look_until(
                    [&] {
                      if (is_whole()) return true;
                      if (time.passed() > grace_) lead_back(), time = {};
                      return false;
                    },
                    3 * test::patience),
                "the old master has become a replica");
  }

  std::vector<test::redis_server*> masters() override { return {&set_.node(master_)}; }

  std::map<std::string, std::string> logs() override {
    std::map<std::string, std::string> made;
    for (std::size_t i = 0; i < nodes; ++i) made[name_of_log(set_.node(i))] = set_.node(i).log();
    for (std::size_t i = 0; i < sentinels; ++i) made["sentinel-" + std::to_string(i)] = set_.sentinel(i).log();
    return made;
  }

 private:
  void count_as_dead_after(milliseconds limit) {
    for (std::size_t i = 0; i < sentinels; ++i)
      if (i != deaf_) set_.sentinel(i).admin().ok("SENTINEL", "SET", "m", "down-after-milliseconds", limit.count());
  }

  bool is_replaced() {
    int agree = 0;
    for (std::size_t i = 0; i < sentinels; ++i)
      if (auto const named = i == deaf_ ? master_ : set_.named_by(i); named != master_) ++agree, successor_ = named;
    return agree >= 2;
  }

  bool is_failing_over() {
    for (std::size_t i = 0; i < sentinels; ++i)
      if (i != deaf_ &&
          field(set_.sentinel(i).admin().ok("SENTINEL", "MASTER", "m"), "flags").find("failover_in_progress") !=
              std::string::npos)
        return true;
    return false;
  }

  // The master is silent. Its successor is judged with patience from the beginning: a machine that stands still for a
  // moment would have that replaced, too, and two failovers in a row are not what is promised for.
  void await_successor() {
    std::optional<milliseconds> said;
    must_happen(look_until(
                    [&] {
                      if (is_replaced()) return true;
                      auto const limit = is_failing_over() ? patient : dead_after;
                      if (std::exchange(said, limit) != limit) count_as_dead_after(limit);
                      return false;
                    },
                    2 * test::patience),
                "another node is promoted");
    count_as_dead_after(patient);
  }

  // It finds no replica good enough, perhaps, and gives up without a word.
  void ask() {
    auto const whom = deaf_ == 0 ? 1u : 0u;
    must_happen(look_until(
                    [&] {
                      set_.sentinel(whom).admin().command("SENTINEL", "FAILOVER", "m");
                      return look_until([&] { return is_replaced(); }, milliseconds(2'500));
                    },
                    2 * test::patience),
                "another node is promoted");
  }

  void kill_master() {
    auto& one = set_.node(master_);
    one.kill();
    await_successor();
    // It is empty. As a master it could be believed by a sentinel that has not heard of the other one.
    auto const leads = set_.node(set_.named_by(deaf_ == 0 ? 1 : 0)).where().port;
    one.start(test::redis_server::ready::wait, {"--replicaof", "127.0.0.1", std::to_string(leads)});
  }

  void stop_master(simulation::dice& by) {
    auto& one = set_.node(master_);
    one.pause();
    await_successor();
    std::this_thread::sleep_for(milliseconds(by.between(0, 500)));
    one.resume();
  }

  // One replica goes on, or none does.
  void cut_and_replace(simulation::dice& by) {
    auto const spared = by.one_in(2) ? by.below(nodes) : nodes;
    for (std::size_t i = 0; i < nodes; ++i)
      if (i != master_ && i != spared) set_.cut_replication(i);
    std::this_thread::sleep_for(milliseconds(by.between(20, 400)));
    by.one_in(2) ? ask() : kill_master();
  }

  void replace_unheard(simulation::dice& by) {
    deaf_ = by.below(sentinels);
    set_.sentinel(deaf_).pause();
    by.one_in(3) ? kill_master() : ask();
  }

  bool follows(std::size_t node) {
    auto const said = role_of(set_.node(node));
    return said && said->elements.at(0).text == "slave" &&
           said->elements.at(2).integer == set_.node(master_).where().port && said->elements.at(3).text == "connected";
  }

  bool is_master(std::size_t node) {
    auto const said = role_of(set_.node(node));
    return said && said->elements.at(0).text == "master";
  }

  // The master and all its replicas, as every sentinel sees them.
  bool is_whole() {
    master_ = set_.named_by(0);
    if (!is_master(master_)) return false;
    for (std::size_t i = 0; i < nodes; ++i)
      if (i != master_ && !follows(i)) return false;
    for (std::size_t i = 0; i < sentinels; ++i) {
      if (set_.named_by(i) != master_) return false;
      auto admin = set_.sentinel(i).admin();
      auto const seen = admin.ok("SENTINEL", "MASTER", "m");
      if (field(seen, "flags") != "master" || field(seen, "num-slaves") != std::to_string(nodes - 1)) return false;
      auto const replicas = admin.ok("SENTINEL", "REPLICAS", "m");
      for (auto const& one : replicas.elements)
        if (field(one, "flags") != "slave" || field(one, "master-link-status") != "ok") return false;
    }
    return true;
  }

  // What whoever is in charge would do when sentinels take their time.
  void lead_back() {
    for (std::size_t i = 1; i < sentinels; ++i)
      if (set_.named_by(i) != set_.named_by(0)) return;
    if (!is_master(master_)) insist(set_.node(master_), "REPLICAOF", "NO", "ONE");
    for (std::size_t i = 0; i < nodes; ++i)
      if (i != master_ && !follows(i)) insist(set_.node(i), "REPLICAOF", "127.0.0.1", set_.node(master_).where().port);
  }

  test::sentinel_set set_;
  std::size_t master_ = 0;
  std::size_t successor_ = nodes;
  milliseconds grace_{1'000};     // so long sentinels have to tell an old master
  std::size_t deaf_ = sentinels;  // which one stands still
};

}  // namespace behind_sentinels

std::unique_ptr<topology> make_sentinels() { return std::make_unique<behind_sentinels::several>(); }

}  // namespace latchkey::torture
