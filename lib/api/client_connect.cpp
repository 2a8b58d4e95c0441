#include <api/async_call.hpp>
#include <api/single_lock.hpp>
#include <latchkey/client.hpp>
#include <wire/kind.hpp>

#include <optional>
#include <tuple>

namespace latchkey {

namespace {

// A call needs a key, of any kind; a connect is of no name.
std::shared_ptr<detail::lock_key const> key_of(std::shared_ptr<detail::core> const& core) {
  return std::make_shared<detail::single_lock const>(core, "", detail::reentrant_kind());
}

void connect_within(std::shared_ptr<detail::core> const& core, std::optional<milliseconds> wait) {
  if (!core) throw lock_error(errc::closed, "the client was moved from");
  auto const key = key_of(core);
  detail::check_blocking(*key);
  detail::blocking_call one;
  throw_if(fill_connect(one, *key, wait));
  key->run(one);
  throw_if(one);
}

}  // namespace

void client::connect() const { connect_within(core_, std::nullopt); }
void client::connect(timespan wait) const { connect_within(core_, wait); }

void client::start_connect(std::shared_ptr<detail::core> const& core, detail::handler<void(error_code)> done) {
  auto const key = key_of(core);
  auto call = detail::make_async_call(*key, key, std::move(done),
                                      [](detail::operation const& one) { return std::tuple(one.error); });
  call->begin(fill_connect(*call, *key, std::nullopt));
}

}  // namespace latchkey
