#pragma once
// A client of the model of local turns: its tenure, whose turn it is, its hand-offs, and what it asks for next.

#include "turns_server.hpp"

struct turns_in_tenure : turns_at_server {
  // --- holds ---

  static bool fits(turns_tenure const& t, int lease) {
    if (t.trusted == 0) return false;
    return !rules.lease_fits || (is_fixed(lease) ? lease <= t.trusted : true);
  }

  // `age`: since what it waits for was sent.
  void begin_hold(int c, int owner, int lease, bool member, int age = 0) {
    auto& t = of(c).tenure;
    int const i = t.left[0] ? 1 : 0;
    int until = is_fixed(lease) ? lease - age : rules.watchdog_bound ? t.trusted : sizes.watchdog;
    if (rules.lease_fits && is_fixed(lease)) until = std::min<int>(until, t.trusted);
    t.holder = u8(owner), t.last = last_of(owner), t.left[i] = u8(std::max(until, 1));
    t.fixed = u8(is_fixed(lease) ? t.fixed | 1 << i : t.fixed & ~(1 << i));
    t.member |= u8(member);
  }

  void raise(turns_tenure& t, int lease, int age) {
    if (t.trusted == 0 || lease - age <= t.trusted) return;
    t.trusted = u8(lease - age);
    for (int i = 0; i < most_holds; ++i)
      if (t.left[i] && !(t.fixed >> i & 1)) t.left[i] = std::max(t.left[i], t.trusted);
  }

  // --- turns ---

  bool may_turn(int c) const {
    auto const& q = clients[c];
    auto const& t = q.tenure;
    int const owner = q.queue[0];
    if (q.closed || t.doubted || !local(c) || !q.queued) return false;
    if (rules.turn_bound && t.turns >= sizes.max_streak) return false;
    if (rules.time_bound && t.age >= sizes.max_time) return false;
    if (rules.run_bound == 1 && !may_go_on(q)) return false;
    if (rules.members_ask && (q.want_member >> owner & 1)) return false;
    if (rules.members_return && t.member) return false;
    if (rules.readers_ask && (q.want_read >> owner & 1)) return false;
    auto const& beside = q.read[t.last];
    if (rules.read_ends && beside.left) return false;
    if (beside.where && (rules.asked_read_ends || owner == t.last)) return false;
    if (q.borrower && q.borrower != t.last + 1) return false;
    if (owner != t.last && q.read[owner].any()) return false;
    auto const& ask = q.ask;
    bool const free_to = ask.where == nowhere || ask.order.what == make_it ||
                         (!rules.handed_ends && ask.order.what == hand_off && ask.where == sent) ||
                         (ask.order.what == release &&
                          ((ask.where == outbox && !ask.has(repeated)) || (!rules.unsent_only && ask.where == sent)));
    return free_to && fits(t, q.want[owner]);
  }

  void begin_turn(int c) {
    auto& q = of(c);
    auto& t = q.tenure;
    int const owner = q.queue[0], lease = q.want[owner];
    bool const member = (q.want_member >> owner & 1) != 0;
    check_turn(c, member);
    borrow(q, owner);
    if (q.want_read >> owner & 1) {  // in truth nobody reads
      leave_queue(q, owner);
      q.read[owner].left = t.trusted, q.read[owner].by = t.field;
      return advance(c);
    }
    if (shows(c)) server.turns = later(server.turns);
    t.turns = later(t.turns);
    count_run(q);
    leave_queue(q, owner);
    begin_hold(c, owner, lease, member);
    if (rules.confirms) t.shown = not_known;
    if (rules.sent_later) stop_speaking(q);
    if (t.gone) t.gone_turn = 1;
    if (q.ask.order.what == release && q.ask.where == outbox) q.ask = {};
  }

  void check_turn(int c, bool member) {
    auto const& t = clients[c].tenure;
    if (shows(c) && server.age >= sizes.max_time) violate(late_turn);
    check_run(c, t.field);
    if (t.gone && t.gone_by == by_itself_known) violate(stale_answer);
    if (t.gone && t.gone_heard) violate(stale_message);
    if (t.gone > sizes.max_time) violate(stale_bound);
    if (t.gone && member) violate(vote);
    if (t.member && shows(c)) violate(dishonest);
  }

  // Turns and hand-offs count as one streak. Its time begins with the first of them: the hold before that, which ends
  // in a hand-off, may have lasted for any time.
  static bool may_go_on(turns_client const& q) {
    if (!rules.run_bound || q.run == 0) return true;
    return q.run < sizes.max_streak && q.run_age < sizes.max_time;
  }
  static void count_run(turns_client& q) {
    if (!sizes.hand_offs) return;
    if (q.run == 0 || !rules.run_first) q.run_age = 0;
    q.run = later(q.run);
  }
  static void end_run(turns_client& q) { q.run = q.run_age = 0; }
  void check_run(int c, int field) {
    if (server.holder != field_of(c, field)) return;
    if (server.turns >= sizes.max_streak || (server.turns && server.run_age >= sizes.max_time)) violate(late_turn);
  }

  // Only what is read beside it asks for that, and what a rule that is taken out leaves of another.
  static u8 last_of(int owner) { return sizes.reads || !rules.lent_not_handed ? u8(owner) : u8(0); }
  // Who has a turn stands under the number of the tenure.
  static void borrow(turns_client& q, int owner) {
    if (!sizes.reads) return;
    q.borrower = q.lent = 0;
    if (owner != q.tenure.field) q.borrower = u8(owner + 1), q.lent = q.tenure.field;
  }
  static bool is_lent(turns_client const& q, int owner) { return q.borrower && q.lent == owner; }
  // Nothing of the borrower is at the server any more, nor on its way.
  void settle(int c) {
    auto& q = of(c);
    if (!q.borrower || q.tenure.lasts) return;
    if (rules.read_keeps_field && (q.ask.order.what == release || q.read[q.borrower - 1].any())) return;
    if (!rules.read_keeps_field) q.read[q.borrower - 1].by = u8(q.borrower - 1);
    q.borrower = q.lent = 0;
  }

  // What is under way was sent before: its answer does not speak of what is believed now.
  static void stop_speaking(turns_client& q) { q.ask.marks &= u8(~speaks), q.beside.speaks = 0; }

  // --- the queue ---

  static void leave_queue(turns_client& q, int owner) {
    auto* const end = std::remove(q.queue, q.queue + q.queued, owner);
    std::fill(end, q.queue + q.queued, 0);
    q.queued = u8(end - q.queue);
    q.want[owner] = 0, q.want_member &= u8(~(1 << owner)), q.want_read &= u8(~(1 << owner));
  }
  static void enter_queue(turns_client& q, int owner, int lease, bool member) {
    q.queue[q.queued++] = u8(owner);
    q.want[owner] = u8(lease), q.want_member |= u8(member << owner);
    if (!q.subscribed) q.subscribed = 1;
  }
  // A re-entry whose outer holds are gone waits like others.
  static void requeue_reentry(turns_client& q) {
    if (!q.reenters) return;
    bool const reads = q.read[q.reenters - 1].any();  // he would wait for himself
    if (!reads) enter_queue(q, q.reenters - 1, q.reenter_lease, q.reenter_member);
    q.reenters = q.reenter_lease = q.reenter_member = 0;
  }

  // --- what goes next: follows from the state alone ---

  void begin_ask(turns_client& q, turns_what what, int owner, int lease = 0, int marks = 0) {
    q.ask = {{what, u8(owner), 0, u8(lease)}, outbox, silent, 0, u8(marks), 0, 0};
  }

  // --- reading ---

  // Whoever writes reads in the same field.
  int reads_as(int c, int owner) const {
    auto const& q = clients[c];
    if (q.tenure.lasts && q.tenure.last == owner) return rules.reads_in_its_name ? q.tenure.field : owner;
    if (q.borrower == owner + 1) return q.lent;
    return is_lent(q, owner) && rules.lent_reads_apart ? stand_in : owner;
  }
  static bool stand_in_used(turns_client const& q) {
    return std::any_of(q.read, q.read + most_owners, [](auto const& r) { return r.any() && r.by == stand_in; });
  }
  void begin_read(int c, int owner) {
    auto& r = of(c).read[owner];
    if (!r.left) r.by = u8(reads_as(c, owner));
    r.order = {read_acquire, r.by, 0, u8(sizes.watchdog)};
    r.where = outbox, r.says = silent, r.marks = r.age = 0;
  }
  // What the server has of it goes, now or behind what is under way.
  void end_read(int c, int owner, int marks = 0) {
    auto& r = of(c).read[owner];
    r.left = r.gone = 0;
    r.owes = r.where != nowhere;
    if (r.owes) return;
    r.order = {read_release, r.by, 0, 0};
    r.where = outbox, r.says = silent, r.marks = u8(marks), r.age = 0;
  }
  // It was asked for by who wrote, and does so no more: it waits like others. Until what was sent is answered no other
  // one asks.
  void requeue_read(turns_client& q, int owner) {
    auto& r = q.read[owner];
    if (r.where == nowhere || r.order.what != read_acquire || r.has(abandoned)) return;
    if (r.where != outbox) {
      r.marks |= outlives;
      return;
    }
    bool const may_be_there = r.has(repeated);
    r.where = nowhere, r.order = {}, r.marks = 0;
    enter_queue(q, owner, sizes.watchdog, false);
    q.want_read |= u8(1 << owner);
    if (may_be_there) end_read(int(&q - clients), owner);
  }
  // What was taken, or may have been, and nobody wants: a writer would find it.
  static bool read_in_doubt(turns_client const& q) {
    return std::any_of(q.read, q.read + most_owners, [](auto const& r) {
      return r.where && (r.has(abandoned) || r.has(outlives) || r.order.what == read_release);
    });
  }
  static bool is_head_trying(turns_client const& q) {
    if (!q.queued) return false;
    auto const& r = q.read[q.queue[0]];
    return (q.want_read >> q.queue[0] & 1) && r.where && r.order.what == read_acquire && !r.has(abandoned);
  }
  // The head of the queue wants to read. True: it does not ask yet.
  bool reader_waits(int c, int owner) const {
    auto const& q = clients[c];
    return q.read[owner].any() || (reads_as(c, owner) == stand_in && stand_in_used(q));
  }

  void advance(int c) {
    auto& q = of(c);
    settle(c);
    if (q.tenure.lasts) return advance_tenure(c);
    if (q.back.where && rules.back_awaited) return;
    if (is_head_trying(q)) return;
    if (!q.queued || q.pause == pausing || (q.tried && !q.heard)) return;
    if (q.ask.where != nowhere && (rules.one_try || q.ask.order.what != release || !forget(q))) return;
    int const owner = q.queue[0];
    bool const member = (q.want_member >> owner & 1) != 0;
    if (q.want_read >> owner & 1) {
      if (reader_waits(c, owner)) return;
      q.heard = q.tried = q.hint = 0, q.pause = no_pause;
      return begin_read(c, owner);
    }
    if ((rules.lent_writes_wait && is_lent(q, owner)) || q.read[owner].any() || read_in_doubt(q)) return;
    begin_ask(q, acquire, owner, asked_for(q.want[owner]), member ? for_member : 0);
    q.heard = q.tried = q.hint = 0, q.pause = no_pause;
  }

  void advance_tenure(int c) {
    auto& q = of(c);
    auto const& t = q.tenure;
    if (!t.vacant()) return;
    requeue_reentry(q);
    if (!sizes.hand_offs && may_turn(c)) return begin_turn(c);  // else that is one of three steps that may come next
    if (q.ask.order.what == make_it && (q.ask.where == outbox || (!rules.one_request && forget(q)))) q.ask = {};
    if (q.ask.where != nowhere || q.read[t.last].where != nowhere) return;
    if (t.trusted > 0 || rules.lapsed_returns)
      begin_ask(q, release, t.field);
    else
      end_tenure(q), advance(c);
  }

  // Without the rule that it is awaited: what was sent runs some time, and its answer is read by nobody.
  static bool forget(turns_client& q) {
    if (q.ask.where != sent || !q.has_late_room(1)) return false;
    q.late[q.late_count++] = q.ask.order;
    q.ask = {};
    return true;
  }

  static void end_tenure(turns_client& q) {
    q.tenure = {};
    q.tenure.holder = nobody;
    q.beside.of_tenure = 0;
  }

  void lose(int c) {
    auto& q = of(c);
    if (!q.tenure.gone && shows(c) && server.ttl) violate(false_loss);
    if (!rules.tells && q.tenure.holder != nobody) violate(not_told);
    if (q.ask.where == outbox && q.ask.order.what != acquire) q.ask = {};
    int const last = q.tenure.last;
    end_tenure(q);
    requeue_reentry(q);
    if (sizes.reads) requeue_read(q, last);
    q.tried = u8(!rules.lost_tries && q.queued);
    advance(c);
  }

  void tick() {
    age_server();
    for (int c = 0; c < 2; ++c) {
      auto& q = of(c);
      if (q.ask.where == sent || q.ask.where == answered || q.ask.where == unsettled) q.ask.age = later(q.ask.age);
      if (q.ask.where != nowhere && (q.ask.where != outbox || q.ask.has(repeated)))
        q.ask.first_age = later(q.ask.first_age);
      if (q.run) q.run_age = later(q.run_age);
      if (q.beside.where) q.beside.age = later(q.beside.age);
      if (q.other.left && --q.other.left == 0) q.other.gives_back |= q.other.held, q.other.held = 0;
      for (int o = 0; o < most_owners; ++o) {
        auto& r = q.read[o];
        if (r.where && (r.where != outbox || r.has(repeated))) r.age = later(r.age);
        if (r.left && --r.left == 0) end_read(c, o), advance(c);
      }
      if (q.tenure.lasts)
        age_tenure(c);
      else if (q.hint && --q.hint == 0 && q.ask.where == nowhere)
        q.tried = 0, advance(c);
    }
  }

  void age_tenure(int c) {
    auto& t = of(c).tenure;
    if (t.gone) t.gone = later(t.gone);
    t.age = later(t.age);
    if (t.trusted) --t.trusted;
    bool const had = t.holder != nobody;
    for (int i = most_holds; i-- > 0;)
      if (t.left[i] && --t.left[i] == 0) t.end_hold(i);
    if (!t.vacant()) return;
    if (had ? rules.fixed_ends || t.trusted == 0 : t.trusted == 0) advance(c);
  }
};

// Hand-offs: a release and the acquire of the head in one request.
struct turns_with_hand_offs : turns_in_tenure {
  // The head may be granted it in the same request that is the release of the tenure.
  bool may_hand_off(int c) const {
    auto const& q = clients[c];
    auto const& ask = q.ask;
    if (!sizes.hand_offs || q.closed || !q.queued || ask.order.what != release || !may_go_on(q)) return false;
    bool const unsent = q.tenure.lasts && ask.where == outbox && !ask.has(repeated);
    bool const killed = rules.unsent_handed != 1 && ask.where == outbox;
    bool const under_way = rules.unsent_handed == 0 && ask.where == sent && q.has_late_room(1);
    if (!unsent && !killed && !under_way) return false;
    int const to = q.queue[0];
    if (q.back.where && q.back.by == to) return false;
    return to != (rules.lent_not_handed ? ask.order.by : q.tenure.last);
  }

  void send_hand_off(int c) {
    auto& q = of(c);
    u8 const from = q.ask.order.by, to = q.queue[0];
    check_run(c, from);
    count_run(q);
    if (q.ask.where == sent) forget(q);
    bool const member = (q.want_member >> to & 1) != 0;
    q.ask = {{hand_off, from, to, asked_for(q.want[to])}, sent, silent, 0, u8(member ? for_member : 0), 0, 0};
    q.heard = q.tried = q.hint = 0, q.pause = no_pause;
    if (rules.handed_ends) end_tenure(q);
  }

  // The grantee has left, and it lies in the outbox: it is the release again. If a copy was sent he may have it.
  void take_apart(turns_client& q) {
    auto const was = q.ask;
    bool const may_be_there = was.has(repeated);
    begin_ask(q, release, was.order.by, 0, may_be_there ? repeated : 0);
    if (may_be_there && rules.handed_returns) q.back = {outbox, was.order.count, silent};
  }

  void send_back(int c) { of(c).back.where = sent; }
  void run_back(int c) {
    auto& back = of(c).back;
    u8 ignored = 0;
    back.says = run(c, {release, back.by, 0, 0}, false, ignored), back.where = answered;
  }
  void answer_back(int c) {
    auto& q = of(c);
    if (q.back.says == done) q.tried = u8(q.subscribed == 2);
    q.back = {};
    advance(c);
  }
};
