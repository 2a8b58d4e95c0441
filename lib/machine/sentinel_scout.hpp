#pragma once

#include <codec/reply.hpp>
#include <machine/scout_rounds.hpp>
#include <wire/node_address.hpp>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::detail {

// Which server has the names of a client, by what others claim of it. A claim with an epoch is believed only if no
// later one was: what a stale witness says does not lead back. Knows no time.
class routes {
 public:
  struct route {
    node_address at;
    std::uint64_t epoch = 0;
  };
  enum class verdict : unsigned char {
    stale,    // a later claim is known
    known,    // nothing changes
    again,    // the same server, elected again: another one had them meanwhile, and perhaps not all of what was done
    changes,  // from now on they are there
  };

  // Nobody has said yet where they are.
  bool empty() const { return !now_; }
  route const& now() const { return *now_; }

  // `works`: the server that has them now answers.
  verdict claim(node_address at, std::uint64_t epoch, bool works);

 private:
  std::optional<route> now_;
};

// Whom to ask for the master, and as whom.
struct sentinels {
  std::vector<node_address> seeds;
  std::string master;
  std::string username;
  std::string password;
};

// Told what the sentinels say.
class scout_user {
 public:
  // Whether it leads anywhere. `asked`: when.
  virtual routes::verdict on_claim(node_address const& at, std::uint64_t epoch, std::size_t replicas,
                                   instant asked) = 0;
  // Nobody has an answer that can be used, and why.
  virtual void on_no_claim(error_code const& why, std::string_view text, bool transient) = 0;
  // Under which address a server can be reached that the others know by this one.
  virtual node_address reached_by(node_address const& at) const = 0;

 protected:
  ~scout_user() = default;
};

// When to ask which sentinel where the master is. One is asked after the other, the next one also when an answer takes
// long; the first with a good answer is asked first from then on. All are listened to, since they hear of a failover up
// to two seconds apart: who tells of one is asked.
class sentinel_scout final : public scout_rounds {
 public:
  sentinel_scout(context& shared, sentinels whom, scout_user& user);

  // --- the engine ---
  void turn(io_actions& io, need wanted);
  void opened(std::uint32_t serial) override;
  void open_failed(std::uint32_t serial, error_code const& why, std::string_view text) override;
  void received(std::uint32_t serial, std::string_view bytes) override;
  void broken(std::uint32_t serial) override;
  void on_timer() override;

  // What the first of them said is wrong: others are asked first.
  void distrust();

  std::size_t known() const { return all_.size(); }

 private:
  enum class asked : unsigned char { auth, address, epoch, others, listen };

  struct connection {
    std::uint32_t serial = 0;  // 0: none
    bool up = false;
    instant since{};  // of the opening, or of the question
    reply_reader reader;
    std::string out;
    std::deque<asked> awaited;
  };

  struct sentinel {
    node_address at;
    connection questions;
    connection ear;            // subscribed to the announcements
    instant listen_at{};       // not before; never: it lets nobody listen
    bool in_question = false;  // it has been asked in this round, and has neither answered nor failed
    bool tried = false;        // in this round
    bool wanted = false;       // to be connected to in the next turn, for questions
    node_address named{};      // as the master, in the answer before
  };

  struct found {
    sentinel* one = nullptr;
    connection* by = nullptr;
  };

  found find(std::uint32_t serial);
  bool listens() const;
  void begin_round();
  void ask_next() override;
  void ask(sentinel& one);
  template <class... Words>
  void ask(connection& by, asked what, Words const&... said);
  void greet(connection& by);
  void question(sentinel& one);
  void on_reply(sentinel& one, reply const& answer);
  bool refuses(sentinel& one, reply const& answer);
  void on_address(sentinel& one, reply const& answer);
  void on_epoch(sentinel& one, reply const& answer);
  void learn(sentinel const& from, reply const& answer);
  void answered_well(sentinel& one);
  void failed(sentinel& one, error_code const& why, std::string_view text);
  void nobody_knows(error_code const& why, std::string_view text, bool transient) override;
  void hang_up(connection& by);
  instant deadline(sentinel const& one, connection const& by) const;
  instant next_time() const;
  void ask_who_told(sentinel const& one);
  void hear(sentinel& one, reply const& answer);
  void open(sentinel const& one, connection& by, io_actions& io);

  sentinels const whom_;
  scout_user& user_;
  std::vector<std::unique_ptr<sentinel>> all_;  // who is asked first stands first
  bool told_alone_ = false;                     // that the asked one knows no other
  instant next_one_at_ = never;                 // when the next sentinel of the round is asked, too
};

}  // namespace latchkey::detail
