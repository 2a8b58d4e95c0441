// Explicit-state model of the tokens of a fenced lock: two clients, lost connections with copies that run late, KILL,
// holds that end by time, a lock key that somebody deletes, a counter that refuses to rise.
//
//   g++ -O2 -std=c++20 fenced.cpp -o fenced      ./fenced reread=1
//
// In the order in which the server made them holders, tokens must rise; what an owner believes is what counts.

#include "small_search.hpp"

#include <algorithm>

using u8 = std::uint8_t;

namespace {

int kill_first = 1;       // what a discarded connection left is killed before anything is repeated
int counter_first = 1;    // the counter rises before anything is taken
int reread = 0;           // a mutant: the token is asked for by a command of its own
int each_rises = 1;       // every grant raises the counter, a repeated one too
int refused_returns = 1;  // a repeated acquire that is refused is given back: an earlier copy may have been granted
int life = 2, ticks = 2, discards = 2, deletions = 1, refusals = 1, cancels = 1;

constexpr int owners = 2, lease = 2;
enum place : u8 { none, outbox, sent, answered, in_doubt };
enum what : u8 { nothing, acquire, release };
enum answers : u8 { granted, busy, refused, released, absent };

struct owner_state {
  u8 what = nothing, where = none, answer = 0, age = 0, abandoned = 0, repeated = 0;
  u8 got_token = 0, got_turn = 0;  // in the answer
  u8 late = nothing;
  u8 left = 0, token = 0, turn = 0, asks = 0;  // the hold, as it is believed
  u8 life = 0;

  void finish() { what = nothing, where = none, answer = age = abandoned = repeated = got_token = got_turn = 0; }
};

struct state {
  // The server. `turn` numbers those who became holders: it is not on a real one.
  u8 holder = 0, time = 0, counter = 0, turn = 0, turns = 0;
  owner_state all[owners];
  // The latest turn of which an owner has learned his token.
  u8 best_turn = 0, best_token = 0, broken = 0;
  u8 ticks_left = 0, discards_left = 0, deletions_left = 0, refusals_left = 0, cancels_left = 0;

  void run(int o, int what, bool late, bool counter_refuses) {
    auto& w = all[o];
    u8 const me = u8(o + 1);
    u8 answer = 0;
    if (what == release) {
      answer = holder == me ? released : absent;
      if (holder == me) holder = time = 0;
    } else if (holder != 0 && holder != me) {
      answer = busy;
    } else if (counter_refuses && counter_first) {
      answer = refused;
    } else {
      if (holder == 0) turn = ++turns;
      bool const again = holder == me;
      holder = me, time = lease;
      answer = counter_refuses ? refused : granted;
      if (!counter_refuses && (each_rises || !again)) ++counter;
    }
    if (late) return;
    w.answer = answer, w.where = answered;
    w.got_token = answer == granted ? counter : u8(0);
    w.got_turn = answer == granted ? turn : u8(0);
  }

  void begin(int o, int what) {
    all[o].finish();
    all[o].what = u8(what), all[o].where = outbox;
  }

  void learn(int o, u8 token, u8 turn_of) {
    all[o].token = token;
    if (best_turn != 0 && turn_of != best_turn && (turn_of > best_turn) != (token > best_token)) broken = 1;
    if (best_turn != 0 && turn_of != best_turn && token == best_token) broken = 1;
    if (turn_of >= best_turn) best_turn = turn_of, best_token = token;
  }

  void take_answer(int o) {
    auto& w = all[o];
    auto const was = w;
    w.finish();
    if (was.what == acquire && was.answer == refused && was.repeated && refused_returns) return begin(o, release);
    if (was.what != acquire || was.answer != granted) return;
    if (was.abandoned || was.age >= lease) return begin(o, release);
    w.left = u8(lease - was.age), w.turn = was.got_turn;
    w.asks = u8(reread);
    if (!reread) learn(o, was.got_token, was.got_turn);
  }

  void end_hold(int o) {
    all[o].left = all[o].token = all[o].turn = all[o].asks = 0;
    begin(o, release);
  }

  void resolve(int o) {
    auto& w = all[o];
    w.where = outbox;
    if (w.what == acquire && w.abandoned) begin(o, release), w.repeated = 1;
  }

  void discard(int o) {
    auto& w = all[o];
    if (w.where == sent) w.late = w.what;
    w.where = in_doubt, w.repeated = 1, w.answer = w.age = w.got_token = w.got_turn = 0;
    if (!kill_first) resolve(o);
  }

  void tick() {
    if (time > 0 && --time == 0) holder = 0;
    for (int o = 0; o < owners; ++o) {
      auto& w = all[o];
      if (w.where == sent || w.where == answered) w.age = u8(std::min<int>(w.age + 1, lease));
      if (w.left > 0 && --w.left == 0) end_hold(o);
    }
  }

  template <class Change>
  void add(successors<state>& out, std::string words, Change change) const {
    state after = *this;
    change(after);
    out.emplace_back(after, std::move(words));
  }

  void next(successors<state>& out) const {
    for (int o = 0; o < owners; ++o) {
      auto const& w = all[o];
      std::string const name = "owner " + std::to_string(o);
      if (w.late != nothing)
        add(out, name + ": a late copy runs",
            [&](state& s) { s.run(o, std::exchange(s.all[o].late, u8(nothing)), true, false); });
      if (w.where == outbox) add(out, name + " sends", [&](state& s) { s.all[o].where = sent, s.all[o].age = 0; });
      if (w.where == sent) {
        add(out, name + (w.what == acquire ? ": acquire runs" : ": release runs"),
            [&](state& s) { s.run(o, w.what, false, false); });
        if (w.what == acquire && refusals_left > 0)
          add(out, name + ": acquire runs, the counter refuses",
              [&](state& s) { --s.refusals_left, s.run(o, acquire, false, true); });
      }
      if (w.where == answered) add(out, name + " is answered", [&](state& s) { s.take_answer(o); });
      if (w.what == nothing && w.left == 0 && w.life > 0)
        add(out, name + " wants it", [&](state& s) { --s.all[o].life, s.begin(o, acquire); });
      if (w.left > 0 && w.what == nothing) add(out, name + " releases", [&](state& s) { s.end_hold(o); });
      if (w.left > 0 && w.asks)
        add(out, name + " reads the counter",
            [&](state& s) { s.all[o].asks = 0, s.learn(o, s.counter, s.all[o].turn); });
      if (w.what == acquire && !w.abandoned && cancels_left > 0)
        add(out, name + " gives up", [&](state& s) {
          --s.cancels_left;
          bool const clean = w.where == outbox && !w.repeated;
          if (w.where != outbox)
            s.all[o].abandoned = 1;
          else if (clean)
            s.all[o].finish();
          else
            s.begin(o, release);
        });
      if ((w.where == sent || w.where == answered) && discards_left > 0)
        add(out, name + " loses its connection", [&](state& s) { --s.discards_left, s.discard(o); });
      if ((w.where == in_doubt || w.late != nothing) && kill_first)
        add(out, name + " kills and resolves", [&](state& s) {
          s.all[o].late = nothing;
          if (s.all[o].where == in_doubt) s.resolve(o);
        });
    }
    if (ticks_left > 0) add(out, "time passes", [](state& s) { --s.ticks_left, s.tick(); });
    if (deletions_left > 0 && holder != 0)
      add(out, "somebody deletes the lock", [](state& s) { --s.deletions_left, s.holder = s.time = 0; });
  }

  char const* wrong() const {
    if (broken) return "TOKEN: a later holder has no higher token";
    bool quiet = true;
    for (auto const& w : all) quiet = quiet && w.what == nothing && w.late == nothing;
    for (int o = 0; o < owners; ++o)
      if (quiet && holder == o + 1 && all[o].left == 0) return "GHOST: the server shows a holder that is none";
    return nullptr;
  }
};

}  // namespace

int main(int count, char** words) {
  std::vector<setting> const all = {{"kill", &kill_first},
                                    {"refused_returns", &refused_returns},
                                    {"counter_first", &counter_first},
                                    {"reread", &reread},
                                    {"each_rises", &each_rises},
                                    {"life", &life},
                                    {"ticks", &ticks},
                                    {"discards", &discards},
                                    {"deletions", &deletions},
                                    {"refusals", &refusals},
                                    {"cancels", &cancels}};
  std::string title;
  if (!set(all, count, words, title)) return 2;
  state start;
  std::memset(static_cast<void*>(&start), 0, sizeof start);
  start.ticks_left = u8(ticks), start.discards_left = u8(discards), start.deletions_left = u8(deletions);
  start.refusals_left = u8(refusals), start.cancels_left = u8(cancels);
  for (auto& one : start.all) one.life = u8(life);
  small_search<state> search;
  return search.run(start, 8'000'000, title);
}
