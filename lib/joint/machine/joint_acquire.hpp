#pragma once

#include <base/instant.hpp>
#include <joint/machine/joint_rules.hpp>
#include <latchkey/error.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace latchkey::detail {

// Decides how one call acquires a joint lock: whom to ask next, whom to wait for, what to give back. Knows neither
// threads nor clocks: answers and the time come in, actions go out.
//
// Step by step: everybody is tried once. Who finds one busy gives back what he has got, waits in the queue of that
// one while he holds nothing, and tries the others again when he has it. At once: everybody is asked beside each
// other; a round that cannot reach the quorum is given back everywhere, and another follows after a pause.
class joint_acquire {
 public:
  // One question to one member; never reused.
  using attempt = std::uint64_t;

  struct wish {
    instant deadline = never;
    bool once = false;  // one round, no waiting; without a deadline of its own
    std::uint64_t seed = 0;
  };

  struct answer {
    enum class type : unsigned char { granted, busy, untried, failed };
    type what = type::failed;
    instant until{};  // granted: trusted until then
    error_code error{};
    std::string text{};
  };

  struct question {
    std::size_t member;
    attempt id;
  };

  struct action {
    enum class type : unsigned char {
      ask,        // try all of these once, in one go
      wait,       // wait for this one
      cancel,     // nobody wants the answer any more
      give_back,  // it was granted, and is not wanted
      keep,       // granted after the lock was: belongs to it
      sleep,      // call time() then
      finish,     // tell the caller; comes once
    };
    type what;
    std::vector<question> of{};
    instant when = never;     // ask, wait: deadline; sleep: end
    bool comes_back = false;  // ask: nothing is held yet, and who is not granted will be waited for
  };

  joint_acquire(joint_rules rules, wish asked);

  void begin(instant now);
  void answered(attempt id, answer said, instant now);
  void time(instant now);
  // The caller leaves, or has to. After a grant: who has not answered yet is not wanted any more.
  void cancel(error_code const& why, instant now);
  // What was granted could not begin to be held: too much of it was lost before the last answer came. It tries anew.
  void lost(instant now);

  // What is to be done next, in order.
  std::optional<action> take();

  bool finished() const { return finished_; }
  bool granted() const { return granted_; }
  error_code const& error() const { return error_; }
  std::string const& text() const { return text_; }
  // What is held. After a grant: what the lock consists of.
  std::vector<question> held() const;

 private:
  enum class state : unsigned char { idle, asked, held };
  struct slot {
    state at = state::idle;
    attempt id = 0;
    instant until{};
    bool unseen = false;    // it was asked, and no answer has said what became of that
    bool recalled = false;  // it was not wanted any more, in this round, before it had answered
  };

  void next_step();
  void next_round();
  bool round_fits() const;
  void ask(std::vector<std::size_t> const& members, action::type how, instant deadline);
  void count_in_step(std::size_t member, answer said);
  void judge_step();
  void step_back(std::size_t blocking);
  void wait_for(std::size_t member);
  nanoseconds longest_step() const;
  void count_at_once(answer said);
  void judge_round();
  void conclude();
  std::size_t slowest() const;
  void sleep(milliseconds least, milliseconds most);
  void sleep_until(instant end);
  void give_everything_back();
  void cancel_asked();
  void no_more();
  void fail(error_code why, std::string text = {});
  void finish(bool granted);
  bool some_asked() const;
  bool may_be_left() const;
  bool over() const { return now_ >= asked_.deadline; }

  joint_rules const rules_;
  wish const asked_;
  std::vector<slot> slots_;
  std::deque<action> actions_;
  instant now_{};
  attempt next_id_ = 1;
  bool began_ = false;
  bool busy_seen_ = false;  // some member said so, in any round
  bool busy_last_ = false;  // ... in the one that was lost last, if not all were granted since
  bool took_ = false;       // some member was granted, in any round
  instant began_at_{};
  instant first_limit_{};  // the first try is awaited so long, however short the wait
  unsigned lost_rounds_ = 0;
  unsigned idle_steps_ = 0;
  instant sleeps_until_ = never;
  std::uint64_t random_;

  // of the step or round under way
  std::optional<std::size_t> busy_;
  std::optional<std::size_t> failed_;
  std::optional<std::size_t> untried_;
  std::size_t refused_ = 0;
  std::size_t hopeless_ = 0;
  instant round_began_{};       // zero: somebody is waited for
  nanoseconds heard_after_{0};  // the last answer that says something of the lock; step by step the slowest
  error_code error_;
  std::string text_;
  std::size_t blocking_ = 0;  // whom to wait for after the pause

  bool finished_ = false;
  bool granted_ = false;
};

}  // namespace latchkey::detail
