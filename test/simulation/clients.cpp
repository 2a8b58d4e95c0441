#include <simulation/simulation.hpp>

namespace latchkey::simulation {

using detail::client_machine;

namespace {

constexpr moment turn_delay = 2'000;  // until the executor comes to it

// What a step did for callers.
void add(step_numbers& all, detail::actions const& done) {
  for (detail::operation const* one : done.completed) {
    for (auto const number : {std::uint64_t(one->what), one->owner, std::uint64_t(one->error.value()), one->token,
                              std::uint64_t(one->value), std::uint64_t(one->released), std::uint64_t(one->yes)})
      all.add(number);
    all.add(one->text);
  }
  for (auto const& loss : done.lost) all.add(static_cast<std::uint64_t>(loss.why.value()));
  all.add(done.turn);
}

// What it did with its connections, but for the bytes.
void add(step_numbers& all, detail::io_actions const& done) {
  for (std::uint32_t serial : done.lend) all.add(serial);
  for (std::uint32_t serial : done.close) all.add(serial);
  for (auto const& one : done.open)
    for (auto const number : {std::uint64_t(one.as), std::uint64_t(one.serial), std::uint64_t(one.to_peer)})
      all.add(number);
}

}  // namespace

void simulation::perform(std::size_t client) {
  node& me = *nodes_[client];
  add(numbers_, me.out);
  for (detail::operation* one : me.out.completed) completed(static_cast<task&>(*one));
  if (is_planted(planted_fault::trick::completes_twice) && !me.out.completed.empty())
    completed(static_cast<task&>(*me.out.completed[0]));
  for (auto const& loss : me.out.lost) {
    task& holder = *static_cast<test::shown_hold*>(loss.link)->of;
    if (is_planted(planted_fault::trick::shows_on)) {
      holder.shown.lost = false;
      continue;
    }
    holder.losses += is_planted(planted_fault::trick::tells_loss_twice) ? 2 : 1;
    holder.why_lost = loss.why;
    tell([&] { return holder.label + " is told that its hold is lost: " + loss.why.message(); });
    if (holder.losses > 1) fail(holder.label + " was told twice that its hold is lost");
    if (holder.ended) fail(holder.label + " was told of the loss of a hold that it had released");
  }
  if (me.out.turn && !me.turn_posted) {
    me.turn_posted = true;
    network_.post(event::type::turn, now_ + turn_delay, client, 0);
  }
  me.out.clear();
}

void simulation::take_turn(std::size_t client) {
  node& me = *nodes_[client];
  me.turn_posted = false;
  detail::io_actions io;
  me.machine.turn(client_time(me), io, me.out);
  add(numbers_, io);
  for (std::uint32_t serial : io.lend)
    if (wire* const one = network_.find(client, serial)) one->lendable = true;
  for (std::uint32_t serial : io.close) {
    wire* const one = network_.find(client, serial);
    if (!one) continue;
    tell([&] { return me.id + " closes its " + name_of(one->as) + " connection"; });
    trouble(client, 0);
    network_.close_up(*one, now_);
    if (loan* const lent = me.loan_of(serial)) lent->end = now_;  // its borrower notices
    if (is_planted(planted_fault::trick::writes_on)) say(client, serial, "*1\r\n$4\r\nPING\r\n");
  }
  for (auto const& one : io.open) {
    spends(me, load::sort::connections, 1);
    network_.add(client, one.serial, one.as);
    network_.post(event::type::open, now_ + network_.longest_way(), client, one.serial);
  }
  for (auto& one : io.write) say(client, one.serial, std::move(one.bytes));
  perform(client);
}

void simulation::opened(std::size_t client, std::uint32_t serial) {
  node& me = *nodes_[client];
  wire* const one = network_.find(client, serial);
  if (!one) return;  // closed meanwhile
  if (at(me).refused_until > now_) {
    if (mix(options_.seed, 17, at(me).refused_until) % 2 == 0) return;  // nobody answers
    one->client_open = false;
    tell([&] { return me.id + " is refused a " + name_of(one->as) + " connection"; });
    me.machine.open_failed(serial, errc::connect_failed, "refused", client_time(me), me.out);
    return perform(client);
  }
  server& there = at(me).at;
  network_.known_as(*one, there.accept());
  if (there.sick == server::sickness::turns_away) there.turn_away(one->at);
  me.machine.opened(serial, client_time(me), me.out);
  perform(client);
}

void simulation::say(std::size_t client, std::uint32_t serial, std::string&& bytes) {
  wire* const one = network_.find(client, serial);
  if (!one) fail(nodes_[client]->id + " writes to a connection that it has closed");
  numbers_.add(serial);
  numbers_.add(with_names(bytes));
  spends(*nodes_[client], load::sort::bytes, bytes.size());
  network_.send_up(*one, std::move(bytes), now_);
}

// Scripts by their names: their texts may change.
std::string simulation::with_names(std::string bytes) const {
  if (bytes.find("EVAL") == std::string::npos && bytes.find("SCRIPT") == std::string::npos) return bytes;
  auto const replace = [&](std::string const& what, std::string const& by) {
    for (auto at = bytes.find(what); at != std::string::npos; at = bytes.find(what, at + by.size()))
      bytes.replace(at, what.size(), by);
  };
  for (auto const& [script, name] : kind_.scripts()) {
    replace(std::string(script->sha()), name);
    replace("$" + std::to_string(script->text().size()) + "\r\n" + std::string(script->text()), name);
  }
  return bytes;
}

// --- at the client ---

void simulation::heard(wire& on, std::string_view bytes) {
  node& me = *nodes_[on.client];
  if (me.loan_of(on.serial)) return lane_heard(on.client, on.serial, bytes);
  me.machine.received(on.serial, bytes, client_time(me), me.out);
  perform(on.client);
}

// An idle lane is nobody's to look at.
void simulation::ended(wire& on) {
  node& me = *nodes_[on.client];
  bool const lent = me.loan_of(on.serial) != nullptr;
  trouble(on.client, 0);
  if (on.lendable && !lent) {
    on.dead = true;
    return;
  }
  on.client_open = false;
  tell([&] { return me.id + " finds its " + name_of(on.as) + " connection ended"; });
  if (lent) return lane_over(on.client, on.serial, errc::connection_lost);
  me.machine.broken(on.serial, errc::connection_lost, client_time(me), me.out);
  perform(on.client);
}

// When the answer is late, or its caller gives up.
moment simulation::end_of_loan(node const& me, task const& one) const {
  moment const late = now_ + ms(settings_.timeout.count());
  return one.limit() == detail::never ? late : std::min(late, true_time(me, one.limit()));
}

void simulation::lane_heard(std::size_t client, std::uint32_t serial, std::string_view bytes) {
  node& me = *nodes_[client];
  loan& lent = *me.loan_of(serial);
  lent.reader.feed(bytes);
  reply got;
  auto const result = lent.reader.next(got);
  if (result == detail::reply_reader::result::more) return;
  if (result == detail::reply_reader::result::malformed) return lane_over(client, serial, errc::protocol_error);
  auto const next = me.machine.lane_answer(serial, std::move(got), client_time(me), me.out);
  if (next == client_machine::lane_next::send_again) {
    lent.end = end_of_loan(me, *lent.of);
    say(client, serial, std::string(me.machine.lane_bytes(serial)));
  } else {
    me.give_back(serial);
  }
  perform(client);
}

void simulation::lane_over(std::size_t client, std::uint32_t serial, error_code const& why) {
  node& me = *nodes_[client];
  me.give_back(serial);
  me.machine.lane_failed(serial, why, client_time(me), me.out);
  perform(client);
}

// --- at the server ---

void simulation::reached(wire& on, std::string_view bytes) {
  if (on.at == 0) return;
  observe(nobody);
  running_for_ = static_cast<int>(on.client);
  server& there = at(*nodes_[on.client]).at;
  auto const before = there.commands;
  there.arrive(on.at, bytes);
  spends(*nodes_[on.client], load::sort::commands, there.commands - before);
  running_for_ = somebody;
}

void simulation::closed(wire& on) {
  if (on.at == 0) return;
  at(*nodes_[on.client]).at.end_of_file(on.at);
  network_.forget_server(on, now_);
}

void simulation::answered(server::handle connection, std::string&& bytes) {
  if (wire* const one = network_.of_server(connection)) network_.send_down(*one, std::move(bytes), now_);
}

void simulation::dropped(server::handle connection) {
  if (wire* const one = network_.of_server(connection)) network_.forget_server(*one, now_);
}

void simulation::hung_up(server::handle connection) {
  if (wire* const one = network_.of_server(connection)) network_.hang_up(*one, now_);
}

void simulation::ran(server::handle connection, words_view words, reply const& said) {
  wire const* const one = network_.of_server(connection);
  tell([&] {
    bool const left = !one || !one->client_open || one->broken;
    return "server runs" + std::string(left ? ", though the connection is over," : "") +
           (one ? " for " + nodes_[one->client]->id : "") + ": " + words_for(words) + " -> " + brief(said);
  });
  note_script(words, said);
  bool const late = one && (!one->client_open || one->broken) && at(*nodes_[one->client]).unkilled &&
                    !is_planted(planted_fault::trick::excuses_nothing);
  if (late) expect_late(one->client, words);
  observe(running_for_, late);
  if (late) excuse_late(one->client, words);
}

}  // namespace latchkey::simulation
