#pragma once

#include <codec/reply.hpp>
#include <machine/scout_rounds.hpp>
#include <wire/cluster.hpp>
#include <wire/node_address.hpp>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::detail {

// Whom to ask for the nodes of a cluster, and as whom.
struct cluster_seeds {
  std::vector<node_address> nodes;
  std::string username;
  std::string password;
  bool by_name = false;  // nodes are to prove that they are those of the names which they announce
};

// Told what the nodes say.
class cluster_user {
 public:
  // Does it tell what it knows to somebody who can use it? `connect_failed`: all of it was known to be out of date.
  // `no_master`: some slots have no node. `asked`: when.
  virtual error_code on_cluster(node_address const& by, cluster_view const& seen, instant asked) = 0;
  // Nobody has an answer that can be used, and why.
  virtual void on_no_cluster(error_code const& why, std::string_view text, bool transient) = 0;

 protected:
  ~cluster_user() = default;
};

// When to ask which node of a cluster who has the slots. One is asked at a time, and again as long as it answers; the
// next one when it does not, or not soon. Which is the first is chosen at random, so that not all clients ask the same.
class cluster_scout final : public scout_rounds {
 public:
  cluster_scout(context& shared, cluster_seeds whom, cluster_user& user);

  // --- the engine ---
  void turn(io_actions& io, need wanted);
  void opened(std::uint32_t serial) override;
  void open_failed(std::uint32_t serial, error_code const& why, std::string_view text) override;
  void received(std::uint32_t serial, std::string_view bytes) override;
  void broken(std::uint32_t serial) override;
  void on_timer() override;

  using scout_rounds::hurry;
  // The same, and this one knows best.
  void hurry(node_address const& whom);
  // Between two rounds while nothing is missing.
  static milliseconds usual_pause(config const& settings);
  // Whom else to ask, beside the seeds.
  void know(std::vector<node_address> masters);

 private:
  void begin_round();
  void ask_next() override;
  void ask();
  void on_reply(reply const& answer);
  void failed(error_code const& why, std::string_view text);
  void nobody_knows(error_code const& why, std::string_view text, bool transient) override;
  void hang_up();
  instant overdue_at() const;

  cluster_seeds const whom_;
  cluster_user& user_;
  std::vector<node_address> known_;  // masters
  std::deque<node_address> round_;   // who is still to be asked in this one

  // The connection to the one that is asked.
  node_address at_{};
  std::uint32_t serial_ = 0;  // 0: none
  bool up_ = false;
  bool wanted_open_ = false;  // in the next turn
  instant since_{};           // of the opening, or of the question
  reply_reader reader_;
  std::string out_;
  bool awaits_auth_ = false;
  bool awaits_ = false;
};

}  // namespace latchkey::detail
