#include <api/async_call.hpp>
#include <api/calls.hpp>
#include <api/lock_key.hpp>
#include <api/requests.hpp>
#include <latchkey/client.hpp>
#include <wire/kind.hpp>

#include <optional>
#include <tuple>

namespace latchkey {

namespace {

// A call needs a key, of any kind; a connect is of no name.
std::shared_ptr<detail::lock_key> key_of(std::shared_ptr<detail::core> const& core) {
  auto key = std::make_shared<detail::lock_key>();
  key->engine = core;
  key->which = &detail::reentrant_kind();
  return key;
}

void connect_within(std::shared_ptr<detail::core> const& core, std::optional<milliseconds> wait) {
  if (!core) throw lock_error(errc::closed, "the client was moved from");
  auto const key = key_of(core);
  detail::check_blocking(*key);
  detail::blocking_call one;
  throw_if(fill_connect(one, *key, wait));
  detail::run(*key, one);
  throw_if(one);
}

}  // namespace

void client::connect() const { connect_within(core_, std::nullopt); }
void client::connect(milliseconds wait) const { connect_within(core_, wait); }

void client::start_connect(std::shared_ptr<detail::core> const& core, detail::handler<void(error_code)> done) {
  std::shared_ptr<detail::lock_key const> const key = key_of(core);
  auto call = detail::make_async_call(*key, key, std::move(done),
                                      [](detail::operation const& one) { return std::tuple(one.error); });
  call->begin(fill_connect(*call, *key, std::nullopt));
}

}  // namespace latchkey
