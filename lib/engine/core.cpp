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
    made->thread_->start([weak = std::weak_ptr(made)](std::exception_ptr what) {
      if (auto self = weak.lock()) self->escaped(what);
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
  if (thread_) return thread_->tracked();
  return asio::prefer(executor_, asio::execution::outstanding_work.tracked);
}

asio::any_io_executor core::handler_executor() const {
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

void core::callback_failed(std::exception_ptr const& what) noexcept try {
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
} catch (std::bad_alloc const&) {
  // There is no memory to tell anybody.
}

void core::post(std::function<void()> function) {
  asio::post(tracked_executor(), [self = shared_from_this(), f = std::move(function)] {
    executor_probe::mark const here(self->probe_);
    f();
  });
}

}  // namespace latchkey::detail
