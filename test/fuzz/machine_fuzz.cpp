#include <fuzz/driver.hpp>
#include <fuzz/input.hpp>
#include <support/start_one.hpp>

#include <algorithm>

namespace latchkey::fuzz {

using detail::client_machine;
using detail::never;
using detail::role;

namespace {

config settings_of(input& from) {
  config made;
  if (from.flip()) made.on_event = [](event const&) {};
  if (from.flip()) made.ping_interval = detail::milliseconds(0);
  if (from.flip()) made.lock_watchdog_batch_size = 1;
  return made;
}

known_kind any_kind(input& from) { return every_kind()[from.pick(every_kind().size())]; }

}  // namespace

driver::driver(input from)
    : in_(from),
      kinds_{any_kind(in_), any_kind(in_)},
      machine_(settings_of(in_), {"00000000-0000-0000-0000-000000000001", in_.flip() ? "user" : "",
                                  in_.flip() ? "password" : "", static_cast<int>(in_.pick(2)), 1}) {}

void driver::play() {
  // Ends also where the bytes choose events that are nothing.
  for (int i = 0; i < 2'000 && !in_.empty(); ++i) {
    unsigned char const what = in_.byte();
    if (turn_due_ && what != 'z') turn();
    event(what);
    check();
  }
  finish();
}

// The letters are those of the seeds.
void driver::event(unsigned char what) {
  constexpr std::string_view letters = "arudxqmceotnslgwbp";
  if (letters.find(static_cast<char>(what)) == letters.npos)
    what = static_cast<unsigned char>(letters[what % letters.size()]);
  switch (what) {
    case 'a': return acquire();
    case 'r': return release(false);
    case 'u': return release(true);
    case 'd': return drop();
    case 'x': return extend();
    case 'q': return plain();
    case 'm': return command_of_kind();
    case 'c': return cancel();
    case 'e': return expire();
    case 't': return pass(detail::milliseconds(std::int64_t{1} << in_.pick(18)));
    case 'n':
      return machine_.wake_at() == never ? void() : pass(std::max(machine_.wake_at() - now_, detail::nanoseconds(0)));
    case 'g': return publish();
    default: break;
  }
  peer* const one = any_peer();
  if (!one) return;
  switch (what) {
    case 'o': return open(*one);
    case 's': return answer(*one, true);
    case 'w': return answer(*one, false);
    case 'b': return one->open ? say(*one, std::string(in_.text(20))) : void();
    case 'l': return end(one->serial, in_.flip());
    case 'p': return in_.pick(16) == 15 ? close() : void();
    default: return;
  }
}

void driver::check() {
  for (auto const& one : calls_) {
    must(one->completions <= 1, "a call is completed once");
    must(one->shown.losses <= 1, "a hold is lost once");
  }
  stats now;
  machine_.snapshot(now);
  must(now.held <= calls_.size() && now.waiting <= calls_.size(), "no more holds and waiters than calls");
  must(now.subscriptions <= 8 * (calls_.size() + 1), "no more subscriptions than waiters and names");
  must(now.acquired >= now.held && now.released + now.lost <= now.acquired, "what ends has begun");
}

void driver::perform() {
  for (detail::operation* one : out_.completed) {
    auto& done = static_cast<call&>(*one);
    ++done.completions;
    must(!static_cast<detail::queue_hook&>(done).is_linked(), "what is completed stands in no list");
    must(done.what != detail::operation::type::acquire || !done.yes || !done.error, "granted, or an error");
  }
  for (auto const& loss : out_.lost) {
    auto& shown = static_cast<call::shown_hold&>(*loss.link);
    ++shown.losses;
    must(shown.lost, "a loss is shown");
  }
  turn_due_ = turn_due_ || out_.turn;
  out_.clear();
}

void driver::turn() {
  turn_due_ = false;
  detail::io_actions io;
  machine_.turn(now_, io, out_);
  for (auto const serial : io.lend)
    if (auto const found = peers_.find(serial); found != peers_.end()) found->second.lendable = true;
  for (auto const serial : io.close) {
    peers_.erase(serial);
    if (lent_ != serial) continue;
    lent_ = 0;  // its borrower wakes up
    machine_.lane_failed(serial, errc::connection_lost, now_, out_);
  }
  for (auto const& one : io.open) peers_.emplace(one.serial, peer{.as = one.as, .serial = one.serial});
  for (auto const& one : io.write) {
    auto const found = peers_.find(one.serial);
    must(found != peers_.end() && found->second.open, "bytes go to connections that are open");
    found->second.hear(one.bytes);
  }
  perform();
}

void driver::pass(detail::nanoseconds length) {
  now_ += length;
  machine_.time(now_, out_);
  must(machine_.wake_at() > now_, "what was due was done");
  perform();
}

peer* driver::any_peer() {
  if (peers_.empty()) return nullptr;
  return &std::next(peers_.begin(), static_cast<std::ptrdiff_t>(in_.pick(peers_.size())))->second;
}

void driver::open(peer& one) {
  if (one.open) return;
  if (in_.pick(8) == 7) {
    auto const serial = one.serial;
    peers_.erase(serial);
    machine_.open_failed(serial, errc::connect_failed, "no", now_, out_);
  } else {
    one.open = true;
    machine_.opened(one.serial, now_, out_);
  }
  perform();
}

void driver::answer(peer& one, bool honest) {
  if (!one.open || one.asked.empty()) return;
  auto const asked = std::move(one.asked.front());
  one.asked.pop_front();
  std::string bytes;
  if (honest)
    bytes = plausible(one, asked, in_.pick(32));
  else
    write_reply(any_reply(in_), bytes);
  say(one, bytes);
}

void driver::say(peer& to, std::string const& bytes) {
  auto const serial = to.serial;
  if (lent_ != serial) {
    machine_.received(serial, bytes, now_, out_);
    return perform();
  }
  detail::reply_reader reader;
  reader.feed(bytes);
  detail::reply one;
  auto next = client_machine::lane_next::done;
  if (reader.next(one) == detail::reply_reader::result::reply)
    next = machine_.lane_answer(serial, std::move(one), now_, out_);
  else
    machine_.lane_failed(serial, errc::protocol_error, now_, out_);
  if (next == client_machine::lane_next::send_again)
    to.hear(machine_.lane_bytes(serial));
  else
    lent_ = 0;
  perform();
}

// The connection is lost, or its borrower gives up.
void driver::end(std::uint32_t serial, bool failed) {
  if (lent_ == serial) {
    lent_ = 0;
    machine_.lane_failed(serial, failed ? errc::timeout : errc::connection_lost, now_, out_);
  } else {
    peers_.erase(serial);
    machine_.broken(serial, errc::connection_lost, now_, out_);
  }
  perform();
}

void driver::publish() {
  for (auto& [serial, one] : peers_) {
    if (one.as != role::messages || one.channels.empty()) continue;
    auto const& channel = one.channels[in_.pick(one.channels.size())];
    constexpr std::string_view payloads[] = {"0", "1", "2", "x"};
    std::string bytes = "*3\r\n$7\r\nmessage\r\n$" + std::to_string(channel.size()) + "\r\n" + channel + "\r\n$1\r\n";
    bytes += in_.any(payloads);
    return say(one, bytes + "\r\n");
  }
}

void driver::close() {
  machine_.close(1, now_, out_);
  perform();
  machine_.close_now(now_, out_);
  perform();
  for (auto const& one : calls_) {
    must(one->completions == 1, "closing completes every call");
    if (one->what != detail::operation::type::acquire || !one->yes || !one->keeps || one->ended) continue;
    one->ended = true;
    machine_.unlink(*one->which, one->key, one->owner, one->hold);
    machine_.drop(*one->which, one->key, one->owner, one->hold, now_, out_);
  }
  stats now;
  machine_.snapshot(now);
  must(now.held == 0 && now.waiting == 0, "closing ends every hold and every wait");
}

// From here on the server is good to everybody, and nothing may be left, not even a renewal that is no matter any more.
void driver::finish() {
  close();
  if (lent_ != 0) end(lent_, false);
  for (int i = 0; i < 1'000 && !(machine_.quiet() && machine_.idle()); ++i) {
    if (turn_due_) {
      turn();
      continue;
    }
    auto const ready = [](auto const& one) { return !one.second.open || !one.second.asked.empty(); };
    auto const found = std::find_if(peers_.begin(), peers_.end(), ready);
    if (found == peers_.end()) {
      must(machine_.wake_at() != never, "what is not at rest waits for something");
      pass(std::max(machine_.wake_at() - now_, detail::nanoseconds(0)));
      continue;
    }
    peer& one = found->second;
    if (!one.open) {
      one.open = true;
      machine_.opened(one.serial, now_, out_);
      perform();
      continue;
    }
    auto const asked = std::move(one.asked.front());
    one.asked.pop_front();
    say(one, plausible(one, asked, 0));
  }
  must(machine_.quiet(), "a closed client has nothing left to say");
  must(machine_.idle(), "a closed client has no records, queues and channels");
  check();
}

using detail::milliseconds;
using detail::operation;

namespace {

constexpr milliseconds waits[] = {milliseconds(0), milliseconds(-1), milliseconds(1), milliseconds(5'000),
                                  milliseconds(60'000)};
constexpr milliseconds leases[] = {milliseconds(0), milliseconds(1), milliseconds(2'000), milliseconds(30'000),
                                   milliseconds(1'000'000'000)};

}  // namespace

call& driver::made(operation::type what) {
  auto& one = *calls_.emplace_back(std::make_unique<call>());
  one.what = what;
  one.which = kinds_[in_.pick(2)].which;
  one.key = in_.flip() ? "k" : "{other}";
  one.name = one.key;
  one.owner = 1 + in_.pick(3);
  one.started = now_;
  one.deadline = detail::after(now_, milliseconds(20'000));
  return one;
}

// Of the one who has this hold.
call& driver::about(operation::type what, call const& held) {
  auto& one = made(what);
  one.which = held.which;
  one.mode = held.mode;
  one.name = one.key = held.key;
  one.owner = held.owner;
  return one;
}

void driver::start(call& one, bool may_borrow) {
  one.self_timed = may_borrow;
  if (auto const lane = test::start_one(machine_, one, may_borrow, now_, out_)) {
    must(lent_ == 0, "the lane is lent to one caller at a time");
    lent_ = lane;
    auto const found = peers_.find(lent_);
    must(found != peers_.end() && found->second.lendable, "only a lane that is open is lent");
    found->second.hear(machine_.lane_bytes(lent_));
  }
  perform();
}

void driver::acquire() {
  auto& one = made(operation::type::acquire);
  auto const& rules = one.which->rules();
  one.mode = static_cast<unsigned char>(in_.pick(rules.modes));
  // Half of the owners hold without leases.
  if (!rules.renews || one.owner % 2 != 0) one.link = &one.shown;
  if (auto const wait = in_.any(waits); wait < wait.zero())
    one.deadline = detail::never;
  else if (wait > wait.zero())
    one.deadline = detail::after(now_, wait);
  else
    one.once = true;
  one.lease = in_.any(leases);
  one.line_time = milliseconds(300'000);
  // Permits and doors have an owner for every call, as the client gives them.
  if (!rules.renews) one.owner = 100 + calls_.size();
  auto const more = in_.pick(8);
  bool const is_permit = one.which == &detail::permit_semaphore_kind();
  one.keeps = rules.renews || (is_permit && (more & 1) != 0);
  if ((more & 2) != 0 && rules.renews && one.lease == one.lease.zero()) one.max_hold = milliseconds(40'000);
  if ((more & 4) != 0 && one.once && one.which->acquire_all()) one.bundle = 1 + in_.pick(2);
  start(one, one.bundle == 0 && in_.flip());
}

call* driver::any_call() {
  return calls_.empty() ? nullptr : calls_[calls_.size() - 1 - in_.byte() % calls_.size()].get();
}

// A call that was granted a hold and has not given it up.
call* driver::any_hold() {
  std::size_t const first = calls_.empty() ? 0 : in_.byte() % calls_.size();
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    call& one = *calls_[(first + i) % calls_.size()];
    if (one.what == operation::type::acquire && one.completions > 0 && one.yes && one.keeps && !one.ended) return &one;
  }
  return nullptr;
}

// Of the owner's latest hold that no lease has, or of one that a lease has.
void driver::release(bool latest) {
  call* const held = any_hold();
  if (!held) return;
  auto& one = about(operation::type::release, *held);
  if (!latest) {
    one.hold = held->hold;
    held->ended = true;
    machine_.unlink(*held->which, held->key, held->owner, held->hold);
  }
  start(one, in_.flip());
}

void driver::extend() {
  call* const held = any_hold();
  if (!held || !has({held->which, 0}, detail::ask::extend)) return;
  auto& one = about(operation::type::extend, *held);
  one.hold = held->hold;
  one.lease = in_.any(leases);
  if (one.lease == one.lease.zero()) one.lease = milliseconds(10);
  start(one, in_.flip());
}

void driver::drop() {
  call* const held = any_hold();
  if (!held) return;
  held->ended = true;
  machine_.unlink(*held->which, held->key, held->owner, held->hold);
  machine_.drop(*held->which, held->key, held->owner, held->hold, now_, out_);
  perform();
}

void driver::plain() {
  auto& one = made(operation::type::query);
  auto const& rules = one.which->rules();
  constexpr detail::query questions[] = {detail::query::is_locked,  detail::query::is_held_by,
                                         detail::query::hold_count, detail::query::time_to_live,
                                         detail::query::value,      detail::query::token};
  one.question = in_.any(questions);
  if (one.question == detail::query::token && !rules.tokens) one.question = detail::query::value;
  if (in_.flip() && has({one.which, 0}, detail::ask::force_unlock)) one.what = operation::type::force_unlock;
  start(one, in_.flip());
}

void driver::command_of_kind() {
  auto const& of = kinds_[in_.pick(2)];
  if (of.commands == 0) return;
  auto& one = made(operation::type::command);
  one.which = of.which;
  one.command = static_cast<unsigned char>(in_.pick(of.commands));
  one.owner = 100 + calls_.size();
  one.amount = static_cast<std::int64_t>(in_.pick(4));
  one.argument = std::make_shared<std::string const>(in_.text(4));
  start(one, in_.flip());
}

void driver::cancel() {
  call* const one = any_call();
  if (!one || one->completions > 0) return;
  machine_.cancel(*one, now_, out_);
  perform();
}

void driver::expire() {
  call* const one = any_call();
  if (!one || one->completions > 0 || !one->self_timed || one->deadline > now_) return;
  machine_.expire(*one, now_, out_);
  perform();
}

}  // namespace latchkey::fuzz

// The bytes are settings and then events, a letter each: see machine_fuzz.cpp.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* bytes, std::size_t size) {
  latchkey::fuzz::driver({bytes, size}).play();
  return 0;
}
