#include <api/async_call.hpp>
#include <api/check_config.hpp>
#include <api/single_lock.hpp>
#include <joint/join.hpp>
#include <latchkey/client.hpp>
#include <wire/kinds.hpp>

namespace latchkey {

namespace {

constexpr std::size_t longest_name = 64 * 1024;

std::shared_ptr<detail::core> make_core(std::optional<asio::any_io_executor> executor, std::string_view uri,
                                        config settings) {
  detail::check_config(settings);
  return detail::core::make(std::move(executor), uri, std::move(settings));
}

detail::core& checked(std::shared_ptr<detail::core> const& core) {
  if (!core) throw lock_error(errc::closed, "the client was moved from");
  return *core;
}

std::shared_ptr<detail::lock_key const> make_key(std::shared_ptr<detail::core> const& core, std::string name,
                                                 detail::kind const& which, unsigned char mode = 0,
                                                 std::shared_ptr<std::string const> permits = nullptr) {
  checked(core);
  if (name.empty()) throw lock_error(errc::bad_argument, "a lock's name must not be empty");
  if (name.size() > longest_name) throw lock_error(errc::bad_argument, "a lock's name must not exceed 64 KiB");
  if (core->server().where.how == detail::target::scheme::cluster && !which.in_one_slot(name))
    throw lock_error(errc::cross_slot, name);
  return std::make_shared<detail::single_lock const>(core, std::move(name), which, mode, std::move(permits));
}

}  // namespace

client::client(std::string_view uri, config settings) : core_(make_core(std::nullopt, uri, std::move(settings))) {}

client::client(asio::any_io_executor executor, std::string_view uri, config settings) {
  if (!executor) throw lock_error(errc::bad_argument, "the executor is empty");
  core_ = make_core(std::move(executor), uri, std::move(settings));
}

client::client(client&&) noexcept = default;

client& client::operator=(client&& other) noexcept {
  if (this != &other) {
    if (core_) core_->close();
    core_ = std::move(other.core_);
  }
  return *this;
}

client::~client() {
  if (core_) core_->close();
}

distributed_lock client::get_lock(std::string name) const {
  return make_lock(std::move(name), detail::reentrant_kind());
}

distributed_lock client::get_fair_lock(std::string name) const {
  return make_lock(std::move(name), detail::fair_kind());
}

// [getter]
distributed_lock client::get_non_reentrant_lock(std::string name) const {
  return make_lock(std::move(name), detail::non_reentrant_kind());
}
// [/getter]

distributed_lock client::get_spin_lock(std::string name) const {
  return make_lock(std::move(name), detail::spin_kind());
}

distributed_lock client::get_fenced_lock(std::string name) const {
  bool const seeded = checked(core_).settings().seed_fencing_token;
  return make_lock(std::move(name), detail::fenced_kind(seeded));
}

distributed_lock client::get_plain_lock(std::string name) const {
  return make_lock(std::move(name), detail::plain_kind());
}

distributed_lock client::make_lock(std::string name, detail::kind const& which) const {
  return distributed_lock(make_key(core_, std::move(name), which));
}

read_write_lock client::get_read_write_lock(std::string name) const {
  auto reads = make_key(core_, name, detail::read_write_kind());
  return read_write_lock(std::move(reads), make_key(core_, std::move(name), detail::read_write_kind(), 1));
}

semaphore client::get_semaphore(std::string name) const {
  return semaphore(make_key(core_, std::move(name), detail::semaphore_kind()));
}

semaphore client::get_semaphore(std::string name, int permits) const {
  if (permits < 0) throw lock_error(errc::bad_argument, "the number of permits must not be negative");
  auto first = std::make_shared<std::string const>(std::to_string(permits));
  return semaphore(make_key(core_, std::move(name), detail::semaphore_kind(), 0, std::move(first)));
}

permit_semaphore client::get_permit_semaphore(std::string name) const {
  return permit_semaphore(make_key(core_, std::move(name), detail::permit_semaphore_kind()));
}

count_down_latch client::get_count_down_latch(std::string name) const {
  return count_down_latch(make_key(core_, std::move(name), detail::count_down_latch_kind()));
}

distributed_lock client::join(std::vector<distributed_lock> members, bool majority) const {
  if (checked(core_).forked()) throw lock_error(errc::closed, "the client belongs to the parent process");
  std::vector<std::shared_ptr<detail::lock_key const>> keys;
  for (auto& one : members) keys.push_back(std::move(one.key_));
  return distributed_lock(detail::join(core_, std::move(keys), majority));
}

distributed_lock client::get_multi_lock(std::vector<distributed_lock> members) const {
  return join(std::move(members), false);
}

distributed_lock client::get_red_lock(std::vector<distributed_lock> members) const {
  return join(std::move(members), true);
}

owner client::new_owner() const { return owner::make(); }

std::string const& client::id() const { return checked(core_).id(); }

stats client::snapshot() const {
  if (checked(core_).forked()) throw lock_error(errc::closed, "the client belongs to the parent process");
  return core_->snapshot();
}

void client::reload_tls() const {
  if (checked(core_).forked()) throw lock_error(errc::closed, "the client belongs to the parent process");
  if (!core_->server().tls) return;
  core_->server().tls->reload();
  if (core_->server().sentinel_tls) core_->server().sentinel_tls->reload();
  detail::note said;
  said.type = event_type::tls_reloaded;
  said.text = "the certificates were read again, for new connections";
  core_->report(said);
}

client::executor_type client::get_executor() const { return checked(core_).threads().handler_executor(); }

void client::close() {
  if (core_) core_->close();
}

void client::start_close(std::shared_ptr<detail::core> const& core, detail::handler<void(error_code)> done) {
  if (core->forked()) return detail::complete_later(asio::system_executor(), std::move(done), errc::closed);
  // Both run until it is told.
  auto const executor = core->threads().tracked_executor();
  auto const where =
      asio::prefer(asio::get_associated_executor(done, executor), asio::execution::outstanding_work.tracked);
  // Shared, since a std::function wants to copy what it holds.
  auto const shared = std::make_shared<detail::handler<void(error_code)>>(std::move(done));
  core->on_closed([executor, where, shared, weak = std::weak_ptr(core)] {
    auto handler = std::move(*shared);
    if (auto const still = weak.lock()) return detail::complete_later(still, std::move(handler), error_code());
    detail::complete_later(executor, std::move(handler), error_code());
  });
  core->begin_close();
}

}  // namespace latchkey
