#include <api/async_call.hpp>
#include <api/inspection.hpp>
#include <latchkey/client.hpp>

namespace latchkey {

namespace {

using detail::inspection;
using done_handler = detail::handler<void(error_code, lock_state)>;

// Asks one question after the other, and then calls its handler.
class async_inspection : public std::enable_shared_from_this<async_inspection> {
 public:
  async_inspection(std::shared_ptr<detail::lock_key const> const& key, done_handler done)
      : what_(key),
        key_(key),
        fallback_(executor_of(*key)),
        where_(asio::prefer(asio::get_associated_executor(done, fallback_), asio::execution::outstanding_work.tracked)),
        done_(std::move(done)) {}

  void next() {
    auto const question = what_.next();
    if (!question) return finish({});
    auto const take = [self = shared_from_this()](detail::operation const& one) {
      return std::tuple(self->what_.take(one) ? error_code() : one.error);
    };
    detail::handler<void(error_code)> then(
        [self = shared_from_this()](error_code const& failed) { failed ? self->finish(failed) : self->next(); });
    auto call = detail::make_async_call(*key_, key_, std::move(then), take);
    call->begin(fill_query(*call, *key_, *question, std::nullopt));
  }

 private:
  void finish(error_code const& failed) {
    lock_state found;
    if (!failed) found = std::move(what_).result();
    asio::post(fallback_, asio::bind_executor(where_, [done = std::move(done_), failed, found]() mutable {
                 std::move(done)(failed, std::move(found));
               }));
  }

  inspection what_;
  std::shared_ptr<detail::lock_key const> key_;
  asio::any_io_executor fallback_;
  asio::any_completion_executor where_;
  done_handler done_;
};

}  // namespace

lock_state client::inspect(distributed_lock const& lock) const {
  detail::check_blocking(*lock.key_);
  inspection what(lock.key_);
  while (auto const question = what.next()) {
    detail::blocking_call one;
    throw_if(fill_query(one, *lock.key_, *question, std::nullopt));
    lock.key_->run(one);
    if (!what.take(one)) throw_if(one);
  }
  return std::move(what).result();
}

void client::start_inspect(std::shared_ptr<detail::lock_key const> const& key, done_handler done) {
  std::make_shared<async_inspection>(key, std::move(done))->next();
}

}  // namespace latchkey
