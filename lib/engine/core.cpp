#include <engine/announce.hpp>
#include <engine/core.hpp>
#include <engine/test_clock.hpp>
#include <engine/transport.hpp>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/container/small_vector.hpp>
#include <boost/uuid/random_generator.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <new>
#include <random>

namespace latchkey::detail {

namespace {

std::string new_id() try { return to_string(boost::uuids::random_generator()()); } catch (std::bad_alloc const&) {
  throw;
} catch (std::exception const& problem) {
  throw lock_error(errc::connect_failed, std::string("no random numbers: ") + problem.what());
}

config& named(config& given, std::string const& id) {
  if (!given.client_name.empty() || given.announce)
    given.client_name = connection_name(given.client_name.empty() ? announced_name : given.client_name, id);
  return given;
}

client_machine::identity identity_of(target const& where, config const& given, std::string const& id) {
  client_machine::identity who;
  who.client_id = id;
  who.username = where.username.empty() ? given.username : where.username;
  who.password = where.password.empty() ? given.password : where.password;
  who.address = where.how == target::scheme::tcp ? where.host + ':' + std::to_string(where.port) : where.path;
  who.database = where.database < 0 ? given.database : where.database;
  (where.how == target::scheme::cluster ? who.nodes : who.sentinels) = where.seeds;
  who.by_name = where.tls;  // certificates are of names, as a rule
  who.master = where.master;
  who.sentinel_username = where.sentinel_username.empty() ? given.sentinel_username : where.sentinel_username;
  who.sentinel_password = where.sentinel_password.empty() ? given.sentinel_password : where.sentinel_password;
  if (given.clock_margin > milliseconds::zero()) who.time_of_day = time_of_day;
  std::random_device source;
  who.seed = (std::uint64_t{source()} << 32) | source();
  return who;
}

core::destination destination_of(target const& where, config const& given) {
  core::destination made{where, nullptr, nullptr};
  if (!where.tls) return made;
  made.tls = std::make_unique<tls_context>(given.tls);
  if (where.how == target::scheme::sentinel && given.sentinel_tls != tls_options{})
    made.sentinel_tls = std::make_unique<tls_context>(given.sentinel_tls);
  return made;
}

// How long a call without a wait of its own lasts at most.
nanoseconds budget_of(config const& given) {
  nanoseconds const answers = to_nanoseconds(given.timeout);
  instant end(to_nanoseconds(given.connect_timeout));
  for (int i = 0; i <= given.retry_attempts && end != never; ++i) end = after(end, answers);
  return end.time_since_epoch();
}

// Memory for what most calls need. False: the caller is told, and that is all.
bool make_room(client_machine& machine, std::span<operation* const> all, actions& out) noexcept try {
  for (operation* call : all) machine.prepare(*call, out);
  return true;
} catch (std::bad_alloc const&) {
  for (operation* call : all) machine.unprepare(*call);
  return false;
}

// A transport that is to be made. Goes unmade only with its execution context.
class unborn_transport {
 public:
  explicit unborn_transport(std::shared_ptr<core> whose) : core_(std::move(whose)) {}
  ~unborn_transport() {
    if (core_) core_->executor_gone();
  }
  unborn_transport(unborn_transport const&) = delete;
  unborn_transport& operator=(unborn_transport const&) = delete;

  std::shared_ptr<core> take() { return std::exchange(core_, nullptr); }

 private:
  std::shared_ptr<core> core_;
};

}  // namespace

std::shared_ptr<core> core::make(std::optional<asio::any_io_executor> executor, std::string_view uri, config given) {
  target const where = parse_uri(uri);
  // In the child of a fork nothing may be touched, not even to destroy it.
  std::shared_ptr<core> made(new core(std::move(executor), where, std::move(given)), [](core* client) {
    if (!client->forked()) delete client;
  });
  made->threads_.start([weak = std::weak_ptr(made)](std::exception_ptr const& what) {
    if (auto const self = weak.lock()) self->events_.callback_failed(what);
  });
  test_clock::enlist(made);
  if (to_nanoseconds(made->settings_.lock_watchdog_timeout) / 3 < to_nanoseconds(made->settings_.timeout))
    made->report({.type = event_type::warning,
                  .text = "lock_watchdog_timeout is shorter than three times timeout: one late answer may end a hold"});
  return made;
}

core::core(std::optional<asio::any_io_executor> executor, target const& where, config given)
    : settings_(std::move(given)),
      budget_(budget_of(settings_)),
      to_(destination_of(where, settings_)),
      id_(settings_.client_id.empty() ? new_id() : settings_.client_id),
      threads_(std::move(executor), forks_),
      events_(settings_, threads_, [this] { post([self = shared_from_this()] { self->events_.deliver(); }); }),
      steps_(named(settings_, id_), identity_of(to_.where, settings_, id_), end_, events_, *this) {
  if (to_.where.how == target::scheme::embedded) {
    server_ = std::make_unique<embedded_server>();
    to_.where.how = target::scheme::unix_socket;
    to_.where.path = server_->socket_path();
  }
}

core::~core() = default;

tls_context* core::destination::tls_for(role as) const {
  return as == role::scout && sentinel_tls ? sentinel_tls.get() : tls.get();
}

stats core::snapshot() {
  stats now;
  steps_.look([&](client_machine& machine) { machine.snapshot(now); });
  return now;
}

void core::post(std::function<void()> function) { post_on(threads_.tracked_executor(), std::move(function)); }

void core::post_on(asio::any_io_executor const& where, std::function<void()> function) {
  uncancelled const whole;
  asio::post(where, [self = shared_from_this(), f = std::move(function)] {
    executor_probe::mark const here(self->threads_.probe());
    f();
  });
}

void core::tell_loss(std::shared_ptr<loss_listener> const& holder, error_code const& why) {
  post_on(holder->calls_the_user() ? threads_.tracked_executor() : threads_.tracked_io_executor(),
          [holder, why] { holder->tell(why); });
}

// --- the transport ---

void core::begin_io() {
  auto unborn = std::make_unique<unborn_transport>(shared_from_this());
  asio::post(threads_.executor(), [birth = std::move(unborn)] { birth->take()->begin_transport(); });
}

void core::begin_transport() noexcept {
  std::shared_ptr<transport> made;
  try {
    made = std::make_shared<transport>(shared_from_this());
  } catch (boost::system::system_error const& problem) {
    // No descriptor is left, perhaps only for now: the next call tries again. Without a timer nobody can wait for that.
    bool const goes_on = steps_.io_failed();
    executor_probe::mark const here(threads_.probe());
    std::string_view const text = problem.what();
    steps_.take([&](client_machine& machine, instant now, actions& out) { machine.unreachable(text, now, out); });
    if (!goes_on) finished();
    return;
  }
  if (!steps_.io_made(made)) return finished();
  asio::dispatch(made->strand(), [made]() noexcept {
    made->start();
    made->turn();
  });
}

void core::lane_closed(std::uint32_t serial, bool abruptly) {
  auto const gone = steps_.look([&](client_machine&) { return lanes_.end(serial); });
  if (gone) abruptly ? gone->abort() : gone->shut();
}

void core::start(detail::call& call) {
  operation* const all[] = {&call};
  // What is adopted was asked for a question ago.
  start_all(all, false, call.what == operation::type::adopt ? instant{} : call.started);
}

core::loan core::start(std::span<call* const> all, bool may_borrow) {
  boost::container::small_vector<operation*, 4> const calls(all.begin(), all.end());
  return start_all(calls, may_borrow, {});
}

core::loan core::start_all(std::span<operation* const> calls, bool may_borrow, instant at) {
  bool room = false;
  loan taken;
  steps_.take(
      steps_.prepare(), at,
      [&](client_machine& machine, instant now, actions& out) {
        room = make_room(machine, calls, out);
        if (!room) return;
        // The release of a lease: from here on the hold is shown nowhere, and its end is no loss.
        for (operation const* const call : calls)
          if (call->what == operation::type::release && call->hold != 0)
            machine.unlink(*call->which, call->name, call->owner, call->hold);
        std::uint32_t const lane = machine.start(calls, may_borrow, now, out);
        if (lane != 0) taken = lanes_.lend(lane, calls, machine, now);
      },
      [] {});
  if (!room) throw std::bad_alloc();
  return taken;
}

void core::drive(loan taken, instant end, wake_flag const& done) noexcept {
  lanes_.drive(std::move(taken), end, done, [this](auto const& locked) { steps_.take(locked); });
}

void core::run(blocking_call& waiting, std::stop_token const& stop) {
  uncancelled const whole;
  std::optional<std::stop_callback<std::function<void()>>> watch;
  waiting.self_timed = true;
  operation* const all[] = {&waiting};
  loan taken = start_all(all, true, waiting.started);
  if (stop.stop_possible()) watch.emplace(stop, [this, &waiting] { cancel(waiting); });
  if (taken.serial != 0) drive(std::move(taken), waiting.limit(), waiting.done);
  wait(waiting);
}

void core::wait(blocking_call& call) noexcept {
  // Nobody may be running the executor: the machine learns of the deadline from here. It moves the deadline on while
  // a first try is on its way.
  for (instant end = call.deadline; !call.done.wait_until(end);) end = expire(call);
}

instant core::expire(call& call) {
  instant end = never;
  steps_.take([&](client_machine& machine, instant now, actions& out) {
    machine.expire(call, now, out);
    if (call.where != operation::place::idle) end = call.deadline;  // else it is over, and is just being told so
  });
  return end;
}

void core::cancel(call& call) {
  if (forked()) return;
  steps_.take([&](client_machine& machine, instant now, actions& out) { machine.cancel(call, now, out); });
}

void core::thread_ended() noexcept {
  if (forked()) return;
  tell_attachments(&attachment::thread_ended);
  std::uint64_t const ended = owner_access::number(owner::this_thread());
  steps_.take([&](client_machine& machine, instant now, actions& out) { machine.thread_ended(ended, now, out); });
}

void core::await_lease(int more) {
  steps_.take([&](client_machine& machine, instant now, actions& out) { machine.await_lease(more, now, out); });
}

bool core::closing() {
  return steps_.look([this](client_machine&) { return end_.begun(); });
}

void core::close() noexcept {
  if (forked()) return;
  uncancelled const whole;
  begin_close();
  if (threads_.own() && !threads_.on_own_thread()) wait_for_close();
}

std::shared_ptr<attachment> core::attached(std::string const& identity,
                                           std::function<std::shared_ptr<attachment>()> const& make) {
  return steps_.look([&](client_machine&) { return attachments_.find(identity, make); });
}

void core::tell_attachments(void (attachment::*what)() noexcept) {
  for (auto const& attachment : steps_.look([this](client_machine&) { return attachments_.alive(); }))
    (attachment.get()->*what)();
}

void core::begin_close() {
  tell_attachments(&attachment::closing);
  std::uint64_t const closer = owner_access::number(owner::this_thread());
  std::vector<std::shared_ptr<direct_lane>> lent;
  std::shared_ptr<transport> io;
  steps_.take([&](client_machine& machine, instant now, actions& out) {
    machine.close(closer, now, out);
    if (!end_.begin()) return;
    lent = lanes_.of_ended_calls();
    io = steps_.io();
  });
  // Their borrowers are told by the machine, but sleep in the sockets.
  for (auto const& lane : lent) lane->shut();
  // Weakly: a thread that has run out keeps what was posted to it, and with a strong reference all of this, for ever.
  if (!io) return;
  asio::post(io->strand(), [weak = std::weak_ptr(io)]() noexcept {
    if (auto const still = weak.lock()) still->limit_close();
  });
}

void core::wait_for_close() {
  instant const end = after(boot_now(), settings_.close_timeout);
  auto const over = std::make_shared<wake_flag>();
  on_closed([over] { over->set(); });
  over->wait_until(end);
  // A handler of the user's may still be running there; it then ends by itself.
  if (!threads_.join_until(end)) events_.abandon();
}

void core::on_closed(std::function<void()> done) {
  if (!steps_.look([&](client_machine&) { return end_.wait(done); })) done();
}

bool core::over() {
  return steps_.look([this](client_machine&) { return end_.over(); });
}

void core::executor_gone() noexcept {
  if (forked()) return;
  tell_attachments(&attachment::closing);
  steps_.take([&](client_machine& machine, instant now, actions& out) {
    end_.cut_short();
    machine.close_now(now, out);
  });
  finished();
}

void core::finished() noexcept {
  std::vector<client_end::waiter> told;
  std::vector<std::shared_ptr<direct_lane>> lanes;
  bool const first = steps_.look([&](client_machine&) {
    if (!end_.finish(told)) return false;
    lanes = lanes_.end();
    return true;
  });
  if (!first) return;
  // A borrower sleeps in the socket. Otherwise it ends here, in good order.
  for (auto const& lane : lanes)
    if (lane.use_count() > 1) lane->shut();
  lanes.clear();
  steps_.take([](client_machine& machine, instant now, actions& out) { machine.close_now(now, out); });
  tell_attachments(&attachment::closed);
  server_.reset();
  for (auto const& done : told) done();
  threads_.finish();
}

}  // namespace latchkey::detail
