#include <engine/core.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/uuid/random_generator.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <new>
#include <random>

namespace latchkey::detail {

namespace {

// Asio takes descriptors with the first timer of an execution context. Later there may be none left, at a place that
// can tell nobody.
void prepare_timers(asio::any_io_executor const& executor) try {
  asio::steady_timer const unused(executor);
} catch (std::bad_alloc const&) {
  throw;
} catch (std::exception const& problem) {
  throw lock_error(errc::connect_failed, std::string("no timers: ") + problem.what());
}

std::string new_id() try { return to_string(boost::uuids::random_generator()()); } catch (std::bad_alloc const&) {
  throw;
} catch (std::exception const& problem) {
  throw lock_error(errc::connect_failed, std::string("no random numbers: ") + problem.what());
}

client_machine::identity identity_of(target const& where, config const& given, std::string const& id) {
  client_machine::identity who;
  who.client_id = id;
  who.username = where.username.empty() ? given.username : where.username;
  who.password = where.password.empty() ? given.password : where.password;
  who.address = where.how == target::scheme::tcp ? where.host + ':' + std::to_string(where.port) : where.path;
  who.database = where.database < 0 ? given.database : where.database;
  std::random_device source;
  who.seed = (std::uint64_t{source()} << 32) | source();
  return who;
}

}  // namespace

std::shared_ptr<core> core::make(std::optional<asio::any_io_executor> executor, std::string_view uri, config given) {
  target where = parse_uri(uri);
  // In the child of a fork nothing may be touched, not even to destroy it.
  std::shared_ptr<core> made(new core(std::move(executor), std::move(where), std::move(given)), [](core* one) {
    if (!one->forked()) delete one;
  });
  if (made->thread_) {
    auto const escaped = [weak = std::weak_ptr(made)](std::exception_ptr const& what) {
      if (auto const self = weak.lock()) self->callback_failed(what);
    };
    made->callbacks_->start(escaped, made->executor_);
    made->thread_->start([escaped](std::exception_ptr const& what) {
      try {
        std::rethrow_exception(what);
      } catch (std::bad_alloc const&) {
        std::terminate();  // Asio has lost a handler of ours, and with it the client would stand still
      } catch (...) {
        escaped(what);
      }
    });
  }
  if (to_nanoseconds(made->settings_.lock_watchdog_timeout) / 3 < to_nanoseconds(made->settings_.timeout)) {
    note said;
    said.type = event_type::warning;
    said.text = "lock_watchdog_timeout is shorter than three times timeout: one late answer may end a hold";
    made->report(said);
  }
  return made;
}

core::core(std::optional<asio::any_io_executor> executor, target where, config given)
    : settings_(std::move(given)),
      where_(std::move(where)),
      id_(new_id()),
      thread_(executor ? nullptr : std::make_unique<io_thread>()),
      callbacks_(executor ? nullptr : std::make_unique<io_thread>(io_thread::begins::when_needed)),
      executor_(executor ? std::move(*executor) : thread_->executor()),
      probe_(executor_),
      machine_(settings_, identity_of(where_, settings_, id_)) {
  prepare_timers(executor_);
  if (where_.how == target::scheme::embedded) {
    server_ = std::make_unique<embedded_server>();
    where_.how = target::scheme::unix_socket;
    where_.path = server_->socket_path();
  }
}

core::~core() = default;

asio::any_io_executor core::tracked_executor() const {
  return callbacks_ ? callbacks_->tracked() : tracked_io_executor();
}

asio::any_io_executor core::handler_executor() const {
  if (!callbacks_) return executor_;
  if (!forked() && callbacks_->finishing()) return asio::system_executor();
  return callbacks_->executor();
}

asio::any_io_executor core::tracked_io_executor() const {
  if (thread_) return thread_->tracked();
  return asio::prefer(executor_, asio::execution::outstanding_work.tracked);
}

asio::any_io_executor core::io_executor() const {
  if (thread_ && !forked() && thread_->finishing()) return asio::system_executor();
  return executor_;
}

instant core::budget_end(instant start) const {
  nanoseconds const answers = to_nanoseconds(settings_.timeout);
  instant end = after(start, settings_.connect_timeout);
  for (int i = 0; i <= settings_.retry_attempts && end != never; ++i) end = after(end, answers);
  return end;
}

stats core::snapshot() {
  stats now;
  std::scoped_lock const lock(mutex_);
  machine_.snapshot(now);
  return now;
}

void core::report(note const& what) noexcept {
  if (!settings_.on_event) return;
  if (!callbacks_) return tell_listener(what);
  std::vector<note> one{what};
  if (events_.push(one)) deliver_events_soon();
}

void core::deliver_events_soon() noexcept {
  // After the end nobody else is left to do it.
  if (callbacks_->finishing()) return deliver_events();
  post([self = shared_from_this()] { self->deliver_events(); });
}

// A part at a time, so that other callbacks have their turns beside a listener who is never done.
void core::deliver_events() noexcept {
  constexpr int most = 64;
  for (int told = 0; auto const next = events_.next();) {
    tell_listener(*next);
    if (++told >= most && !callbacks_->finishing()) return deliver_events_soon();
  }
}

void core::tell_listener(note const& what) noexcept {
  try {
    event shown{};
    shown.type = what.type;
    shown.lock = what.lock;
    if (what.owner != 0) shown.owner = owner_access::from(what.owner);
    shown.error = what.error;
    shown.text = what.text;
    shown.took = std::chrono::duration_cast<std::chrono::microseconds>(what.took);
    shown.kind = what.kind;
    settings_.on_event(shown);
  } catch (...) {
    // Said once: it will most likely throw again.
    if (!listener_failed_.exchange(true)) callback_failed(std::current_exception());
  }
}

void core::callback_failed(std::exception_ptr const& what) noexcept {
  note said;
  said.type = event_type::callback_failed;
  try {
    std::rethrow_exception(what);
  } catch (std::exception const& problem) {
    said.text = problem.what();
  } catch (...) {
    said.text = "not a std::exception";
  }
  report(said);
}

void core::post(std::function<void()> function) { post_on(tracked_executor(), std::move(function)); }

void core::post_on(asio::any_io_executor const& where, std::function<void()> function) {
  uncancelled const whole;
  asio::post(where, [self = shared_from_this(), f = std::move(function)] {
    executor_probe::mark const here(self->probe_);
    f();
  });
}

}  // namespace latchkey::detail
