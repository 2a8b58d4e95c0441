#pragma once

#include <codec/command_writer.hpp>
#include <codec/reply.hpp>
#include <machine/context.hpp>
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
class cluster_scout {
 public:
  using need = scout_rounds::need;

  cluster_scout(context& shared, cluster_seeds whom, cluster_user& user);
  ~cluster_scout();
  cluster_scout(cluster_scout const&) = delete;
  cluster_scout& operator=(cluster_scout const&) = delete;

  // --- the engine ---
  void turn(io_actions& io, need wanted);
  void opened(std::uint32_t serial);
  void open_failed(std::uint32_t serial, error_code const& why, std::string_view text);
  void received(std::uint32_t serial, std::string_view bytes);
  void broken(std::uint32_t serial);
  void on_timer();

  // Nobody is asked until a turn says that somebody has to be.
  bool asleep() const { return wanted_ == need::nothing; }
  // Something may have changed: somebody is asked soon.
  void hurry();
  // The same, and this one knows best.
  void hurry(node_address const& whom);
  // Between two rounds while nothing is missing.
  static milliseconds usual_pause(config const& settings);
  // Whom else to ask, beside the seeds.
  void know(std::vector<node_address> masters);

 private:
  void begin_round();
  void ask_next();
  void ask();
  void say(std::initializer_list<std::string_view> said);
  void on_reply(reply const& answer);
  void failed(error_code const& why, std::string_view text);
  void end_round_in_vain();
  void hang_up();
  instant overdue_at() const;
  void plan();

  context& shared_;
  cluster_seeds const whom_;
  cluster_user& user_;
  timer_node timer_;
  std::vector<node_address> known_;  // masters
  std::deque<node_address> round_;   // who is still to be asked in this one
  bool asking_ = false;              // a round is under way
  instant began_{};                  // the last one
  instant again_at_{};               // when the next one begins, if it is needed
  unsigned failures_ = 0;            // rounds in a row
  error_code why_;                   // what says most of why nobody has answered in this round
  std::string words_;
  need wanted_ = need::nothing;

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
  std::vector<std::uint32_t> closing_;
  words command_;
};

}  // namespace latchkey::detail
