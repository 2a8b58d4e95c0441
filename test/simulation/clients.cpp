#include <simulation/simulation.hpp>

namespace latchkey::simulation {

using detail::client_machine;

namespace {

constexpr moment turn_delay = 2'000;  // until the executor comes to it

}  // namespace

void simulation::perform(std::size_t client) {
  node& me = *nodes_[client];
  for (detail::operation* one : me.out.completed) completed(static_cast<task&>(*one));
  if (is_planted(planted_fault::trick::completes_twice) && !me.out.completed.empty())
    completed(static_cast<task&>(*me.out.completed[0]));
  for (auto const& loss : me.out.lost) {
    task& holder = *static_cast<test::shown_hold*>(loss.link)->of;
    holder.losses += is_planted(planted_fault::trick::tells_loss_twice) ? 2 : 1;
    holder.why_lost = loss.why;
    tell([&] { return holder.label + " is told that its hold is lost: " + loss.why.message(); });
    if (holder.losses > 1) fail(holder.label + " was told twice that its hold is lost");
    if (holder.ended && !unlocked_.contains(&holder))
      fail(holder.label + " was told of the loss of a hold that it had released");
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
  network_.known_as(*one, at(me).at.accept());
  me.machine.opened(serial, client_time(me), me.out);
  perform(client);
}

void simulation::say(std::size_t client, std::uint32_t serial, std::string&& bytes) {
  wire* const one = network_.find(client, serial);
  if (!one) fail(nodes_[client]->id + " writes to a connection that it has closed");
  network_.send_up(*one, std::move(bytes), now_);
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
    lent.end = now_ + ms(settings_.timeout.count());
    say(client, serial, std::string(me.machine.lane_bytes()));
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
  at(*nodes_[on.client]).at.arrive(on.at, bytes);
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
