#pragma once

#include <latchkey/config.hpp>
#include <machine/client_machine.hpp>
#include <server_model/server.hpp>
#include <simulation/clocks.hpp>
#include <simulation/counters.hpp>
#include <simulation/joint_call.hpp>
#include <simulation/kinds.hpp>
#include <simulation/moves.hpp>
#include <simulation/network.hpp>
#include <simulation/planted.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace latchkey::simulation {

// What a run is made of. The same values give the same run.
struct run_options {
  simulated_kind const* kind = nullptr;
  std::uint64_t seed = 1;
  std::size_t clients = 0;  // 0: 1 to 3, by the seed
  unsigned steps = 200;
  bool drift = true;   // clocks run at different rates
  bool jitter = true;  // some bytes take much longer than others
  bool split = true;   // bytes arrive in pieces
  bool turns = true;   // some clients pass locks on without the server
  // Not null: only these moves of the plan, up to the end of the run that `end` says.
  std::vector<std::uint32_t> const* only = nullptr;
  moment end = endless;
  bool trace = false;
  planted_fault const* planted = nullptr;
};

// What the figures of a run count by itself; everything else is one of many rules.
enum class eye : unsigned char { others, late, storm, shown, starved };
inline constexpr char const* eye_names[] = {"others", "late", "storm", "shown", "starved"};

// A rule that is broken; the text is one line.
struct violation : std::runtime_error {
  explicit violation(std::string const& why, eye seen_by = eye::others) : std::runtime_error(why), by(seen_by) {}
  eye by;
};

// One run: whole clients, a modelled server, a network, and a time that moves when nothing else is to be done.
// Bodies: simulation.cpp (events), clients.cpp (what a client does with its connections), calls.cpp (what callers do),
// faults.cpp, checks.cpp (after every step), counters.cpp (how long calls take), history.cpp (who held what when),
// ending.cpp (the end of a run).
class simulation final : public server_user, public network_user {
 public:
  simulation(run_options const& options, lua_scripts& scripts);
  ~simulation();

  // Throws `violation`.
  void run();

  unsigned steps() const { return steps_; }
  // Of the moves, or of the run if a rule was broken before.
  moment ended() const { return end_of_moves_ == endless ? now_ + 1 : end_of_moves_; }
  std::vector<move> const& moves_made() const { return made_; }
  std::vector<std::string> const& told() const { return history_; }
  std::vector<std::uint32_t> step_by_step() { return numbers_.finished(); }
  std::uint64_t calls_done() const { return tasks_.size(); }

 private:
  struct loan {
    std::uint32_t serial;
    task* of;
    moment end;
    detail::reply_reader reader;
  };
  struct node {
    node(config const& settings, std::string name, std::size_t index);
    std::string const id;
    std::size_t const number;
    detail::client_machine machine;
    detail::actions out;
    drifting_clock clock;
    bool turn_posted = false;
    bool gone = false;        // it has crashed: nothing of it runs any more
    bool closing = false;     // its user has closed it: what it holds is told, then left
    std::vector<loan> loans;  // direct lanes that callers have, also such as the client has taken back meanwhile
    moment paused_until = 0;
    moment borrower_back = 0;  // its blocking callers are not scheduled before
    loan* loan_of(std::uint32_t serial) {
      for (auto& one : loans)
        if (one.serial == serial) return &one;
      return nullptr;
    }
    bool lent_to(task const* who) const {
      return std::any_of(loans.begin(), loans.end(), [&](loan const& one) { return one.of == who; });
    }
    // A closed client remembers what it has left to its lease.
    bool at_end() const { return machine.idle() || machine.closed(); }
    void give_back(std::uint32_t serial) {
      std::erase_if(loans, [&](loan const& one) { return one.serial == serial; });
    }
    moment troubled_until = 0;  // it may be slow until then, for a fault that it had to find out about
    load has_sent;
    std::size_t place = 0;    // whose server
    std::size_t process = 0;  // clients of one process live and stop together, and have one clock
  };
  // A server, its clock, and until when what befalls it.
  struct site {
    site(lua_scripts& scripts, server_user& user, server::handle first) : at(scripts, user, first) {}
    server at;
    drifting_clock clock;
    moment loading_until = 0, read_only_until = 0, full_until = 0, busy_until = 0, refused_until = 0, stalled_until = 0,
           unkilled_until = 0, sick_until = 0;
    bool unkilled = false;  // it has refused CLIENT KILL before
    std::uint64_t lost_messages = 0;
    moment when_gone(std::int64_t ends) const { return clock.when((ends + 1) * 1'000'000); }
  };
  // That somebody held a lock on the server.
  struct tenure {
    std::string field;
    moment from;
    moment to = endless;
    moment ends = 0;       // as it was last seen; 0: without a time to live
    bool refused = false;  // the server would not do what its owner asked for: its lease ends it
    int by = nobody;       // whose command ended it: the number of a client, or one of the two below
  };
  static constexpr int nobody = -1;    // time
  static constexpr int somebody = -2;  // a stranger, or a fault
  struct lock_state {
    std::string name;
    std::size_t place = 0;  // on which server
    std::vector<tenure> past;
    std::vector<tenure> present;
    std::vector<simulated_kind::waiter> line;       // as it was last seen
    std::unordered_map<std::string, moment> stood;  // who has ever stood there, and when last
    std::unordered_set<std::string> stays;          // fields that the server would not take out of its queue
    moment removed = -1;                            // when a fault last took it away behind everybody's back
    moment ends = 0;                                // of who has it now
    moment told_until = 0;  // a time to live was shortened: others may sleep until it would have ended
    // Of what is counted. Callers know that there are base, at least less what is under way and at most more.
    struct ledger {
      std::int64_t base = 0, down = 0, up = 0;
      std::int64_t uncertain = 0;  // of `down`: what will never be known
    };
    ledger count;
    std::int64_t strangers = 0;  // how many permits a stranger has
    std::int64_t stock = 0;      // as it was last seen
    bool refused = false;        // the server would not run something that may have been meant to give back
    moment open_at = -1, closed_at = -1, set_at = -1;      // of a latch: when it last was so
    std::vector<std::pair<moment, bool>> sets;             // of its count, and whether somebody was told that it was he
    std::vector<std::pair<moment, task const*>> grants;    // with a token, in the order in which their callers heard
    std::vector<std::pair<std::string, moment>> releases;  // that ran: for whom, and when
    // While one client has it without a break: since when, and how often it was granted there to the next one.
    struct {
      std::size_t client = SIZE_MAX;
      moment since = 0, second = 0;
      int grants = 0;
    } reign;
  };

  // --- simulation.cpp ---
  bool step(bool with_moves);
  moment next_timer(std::size_t& client) const;
  moment true_time(node const& of, instant shown) const { return of.clock.when(shown.time_since_epoch().count()); }
  // Of a call without a wait of its own: core::budget_end.
  instant budget_end(instant start) const {
    return detail::after(start, settings_.connect_timeout + settings_.timeout * (settings_.retry_attempts + 1));
  }
  instant client_time(node const& of) const { return instant(nanoseconds(of.clock.at(now_))); }
  void serve_timers(std::size_t client);
  void set_server_clocks();
  site& at(lock_state const& lock) const { return *sites_[lock.place]; }
  site& at(node const& client) const { return *sites_[client.place]; }
  keyspace& data_of(lock_state const& lock) const { return at(lock).at.data; }
  void fail(std::string const& why, eye by = eye::others) const;
  template <class Text>
  void tell(Text const& text) {
    if (options_.trace) remember(text());
  }
  void remember(std::string line);
  std::string shown_time(moment t) const;

  // --- clients.cpp ---
  void take_turn(std::size_t client);
  void opened(std::size_t client, std::uint32_t serial);
  void perform(std::size_t client);
  void say(std::size_t client, std::uint32_t serial, std::string&& bytes);
  std::string with_names(std::string bytes) const;
  moment end_of_loan(node const& me, task const& one) const;
  void lane_heard(std::size_t client, std::uint32_t serial, std::string_view bytes);
  void lane_over(std::size_t client, std::uint32_t serial, error_code const& why);
  void heard(wire& on, std::string_view bytes) override;
  void ended(wire& on) override;
  void reached(wire& on, std::string_view bytes) override;
  void closed(wire& on) override;
  void answered(server::handle connection, std::string&& bytes) override;
  void dropped(server::handle connection) override;
  void hung_up(server::handle connection) override;
  void ran(server::handle connection, words_view words, reply const& said) override;

  // --- calls.cpp ---
  void act(move const& one);
  task& made(task::type what, std::size_t client, std::uint64_t owner, std::string const& name);
  // In one step with those beside it, which are of the same client.
  void start(task& one, std::span<task* const> beside = {});
  void begin_acquire(dice& chances, bool once);
  void end_hold(task& held, bool drop, dice& chances);
  void extend(task& held, dice& chances);
  void ask(dice& chances);
  void force(dice& chances);
  void completed(task& done);
  static std::string details_of(task const& one);
  task* any_held(dice& chances, bool live) const;
  bool awake(std::size_t client) const { return !nodes_[client]->gone && nodes_[client]->paused_until <= now_; }
  std::size_t any_client(dice& chances) const;
  void add_process();
  lock_state& any_lock(dice& chances);

  // --- permits.cpp ---
  bool act_on_permits(move const& one, dice& chances);
  void begin_take(dice& chances, bool once);
  task& begin_command(std::size_t client, std::string const& name, unsigned char what, dice& chances);
  void command(dice& chances, unsigned char what, std::int64_t amount);
  void change_number(dice& chances);
  void give_permits(task& held, bool drop, dice& chances);
  void update_permit(task& held, dice& chances);
  bool is(task const& one, unsigned char command) const;
  std::int64_t raises(task const& one) const;
  std::int64_t lowers(task const& one) const;
  void account_begin(task const& one);
  void account_end(task& one);
  void check_gone(task const& asked, task const& held);
  void note_stock(lock_state& lock);
  void check_stock();
  void stock_again(lock_state& lock);
  void check_permit_answer(task const& done);

  // --- joints.cpp ---
  std::size_t client_of(joint_call const& one, std::size_t member) const;
  bool is_planted(planted_fault::trick what) const;
  bool act_on_joints(move const& one, dice& chances);
  static error_code cancelled();
  instant joint_time(joint_call const& one) const;
  joint_call* any_joint(dice& chances, bool held) const;
  detail::joint_rules joint_rules_of(milliseconds lease) const;
  void begin_joint(dice& chances, bool once);
  void end_joint(joint_call& one, bool drop, dice& chances);
  void extend_joint(joint_call& one, dice& chances);
  void perform_joint(joint_call& one);
  void perform_joint(joint_call& one, detail::joint_acquire::action const& what);
  void ask_members(joint_call& one, detail::joint_acquire::action const& what);
  void serve_joints();
  void conclude_joint(joint_call& one);
  void lose_joint(joint_call& one);
  void vanish_joints(std::size_t process);
  void check_joints();
  void check_members(joint_call const& one);

  // --- planted.cpp ---
  void plant(planted_fault const& what);
  config client_settings() const;
  void play_tricks();
  void wait_on();

  // --- faults.cpp ---
  void excuse_late(std::size_t client, words_view words);
  void expect_late(std::size_t client, words_view words);
  void befall(move const& one);
  void befall_server(move const& one, dice& chances);
  void sicken(site& place, dice& chances);
  bool any_sick() const;
  void intrude(move const& one, dice& chances);
  void crash(std::size_t client, dice& chances);
  void vanish(std::size_t client, bool unheard);
  bool of_gone(std::string const& field) const;
  void trouble(std::size_t client, moment length);
  void trouble_all(moment length);
  void taken_away(lock_state& lock);
  reply stranger(detail::ask what, lock_state const& lock, std::int64_t lease);
  reply run_script(lock_state const& on, detail::script const& text, detail::item const& asked);
  void stranger_gives(lock_state const& lock, std::string const& id);
  void stranger_counts(lock_state& lock, bool takes, bool more = false);
  void set_modes();

  // --- history.cpp ---
  // `late`: it is what a discarded connection has left behind, and may have changed a queue.
  void observe(int by, bool late = false);
  lock_state& lock_of(std::string_view name);
  std::string field_of(task const& one) const;
  void note_end(lock_state& lock);
  void note_line(lock_state& lock, bool late);
  void check_token(task const& done);
  void note_script(words_view words, reply const& said);
  bool excused(task const& one) const;
  void check_answer(task const& done);
  std::string words_for(words_view words) const;
  static std::string brief(reply const& said);

  // --- checks.cpp ---
  void check_line();
  bool behind_another(task const& one) const;
  bool at_ease(node const& me) const;
  void check();
  void check_beliefs();
  void check_wake_ups();
  void give_back_again();
  void check_counts();
  std::string why_busy();

  // --- counters.cpp ---
  void limit(task const& one);
  moment patience_of(task const& one, moment end) const;
  void check_limit(task const& done);
  void check_limits();
  moment limit_of(joint_call const& one) const;

  // --- counters.cpp ---
  void look_at_locks();
  void check_shown();
  void check_longest(task const& held);
  void check_forced(task const& forced);
  bool owner_asks(task const& held) const;
  task* newest_without_lease(task const& like) const;
  void unlock(task const& like, dice& chances);

  // --- counters.cpp ---
  void note_reign(lock_state& lock, std::vector<std::string> const& holders);
  void check_share(task const& granted);
  void retake();

  // --- counters.cpp ---
  void set_rates();
  void spends(node& me, load::sort what, std::size_t much);
  void forgive();

  // --- ending.cpp ---
  void finish();
  bool came_late(lock_state const& lock, std::string const& field) const;
  void release_all();
  bool any_unreleased() const;
  void outlast_refused();
  moment all_move_at() const;
  bool of_closed(std::string const& field) const;
  bool at_rest();
  std::uint64_t commands() const;
  std::size_t subscriptions();
  void check_rest() const;

  run_options const options_;
  simulated_kind const& kind_;
  config settings_;
  std::vector<std::unique_ptr<site>> sites_;
  network network_;
  std::vector<std::unique_ptr<task>> tasks_;
  std::unique_ptr<task> unknown_;             // planted: none of the tasks
  std::vector<std::unique_ptr<node>> nodes_;  // go before the tasks that stand in their lists
  std::vector<task*> open_;                   // not completed
  std::vector<task*> holders_;                // granted, and neither released nor dropped
  std::vector<lock_state> locks_;
  plan plan_;
  std::optional<move> next_move_;
  std::vector<move> made_;
  std::vector<std::string> history_;
  step_numbers numbers_;
  std::unordered_map<std::string, std::string> script_names_;
  std::unordered_map<task const*, milliseconds> longest_;  // the longest lease that a hold was ever given
  std::unordered_map<task const*, moment> started_;
  std::unordered_map<task const*, moment> limits_;         // of open calls: when each has to be over
  moment next_limit_ = endless;                            // none of them before
  std::unordered_map<task const*, moment> free_since_;     // of those who wait for what they could have
  std::unordered_map<task const*, task const*> ended_by_;  // a release, and the hold that it ends
  std::unordered_map<task const*, std::string> ended_in_;  // ... and its field, which is another one's perhaps
  std::unordered_set<task const*> behind_ours_;  // acquires that began while another owner of their client held it
  std::unordered_set<task const*> in_vain_;      // unlocks with nothing to end but what leases show
  std::unordered_set<task const*> extended_;     // holds whose end was moved by their callers
  std::vector<task*> greedy_;                    // granted to who drops it and takes it again at once
  unsigned retakes_ = 0;                         // that are left in this run
  bool look_again_ = false;                      // calls were completed

  std::vector<task*> ungranted_;            // acquires of permits that took none, as far as their callers know
  std::vector<task*> unanswered_;           // acquires of permits of which nobody knows whether they took any
  std::unordered_set<task const*> scarce_;  // acquires that could not have been granted at some time
  std::vector<std::unique_ptr<joint_call>> joints_;
  std::unordered_map<task const*, std::pair<joint_call*, detail::joint_acquire::attempt>> part_of_;
  std::unordered_map<task const*, joint_call::part> extensions_;  // under way
  std::vector<task*> joint_answers_;
  std::uint64_t last_bundle_ = 0;

  std::uint64_t last_owner_ = 100;

  moment now_ = 0;
  moment end_of_moves_ = endless;
  moment recovery_ = 0;
  std::int64_t most_ppm_ = 0;  // by which clocks may run faster or slower
  moment lost_rate_ = 0;       // what clocks of different rates may make of the longest lease
  unsigned steps_ = 0;
  unsigned sick_steps_ = 0;  // of them: while a server was sick
  unsigned wakes_ = 0;
  load::amounts most_per_minute_{}, at_once_{};
  bool ending_ = false;
  bool resting_ = false;
  int running_for_ = somebody;  // whose command the server runs
};

}  // namespace latchkey::simulation
