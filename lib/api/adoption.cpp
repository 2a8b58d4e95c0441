#include <api/adoption.hpp>
#include <api/async_call.hpp>
#include <api/lease_state.hpp>
#include <api/single_lock.hpp>
#include <latchkey/client.hpp>
#include <latchkey/detail/hold_token.hpp>
#include <latchkey/error.hpp>
#include <latchkey/owner.hpp>
#include <wire/kinds.hpp>
#include <wire/number.hpp>

namespace latchkey::detail {

namespace {

struct word_of_kind {
  std::string_view word;
  std::string_view name;  // kind::traits
  unsigned char mode;
  kind const& (*which)(core const&);
};

constexpr word_of_kind all_words[] = {
    {"lock", "lock", 0, [](core const&) -> kind const& { return reentrant_kind(); }},
    {"fair", "fair_lock", 0, [](core const&) -> kind const& { return fair_kind(); }},
    {"fenced", "fenced_lock", 0,
     [](core const& of) -> kind const& { return fenced_kind(of.settings().seed_fencing_token); }},
    {"spin", "spin_lock", 0, [](core const&) -> kind const& { return spin_kind(); }},
    {"plain", "plain_lock", 0, [](core const&) -> kind const& { return plain_kind(); }},
    {"non-reentrant", "non_reentrant_lock", 0, [](core const&) -> kind const& { return non_reentrant_kind(); }},
    {"read", "read_write_lock", 0, [](core const&) -> kind const& { return read_write_kind(); }},
    {"write", "read_write_lock", 1, [](core const&) -> kind const& { return read_write_kind(); }},
};

constexpr std::size_t longest_adopted_name = 64 * 1'024;

// `uuid:number`.
bool has_number(hold_token const& hold, std::uint64_t& number) {
  auto const colon = hold.owner.rfind(':');
  return colon != std::string::npos && colon != 0 &&
         read_number(std::string_view(hold.owner).substr(colon + 1), number);
}

}  // namespace

std::string adoption::shown() const {
  return key->which->field(client ? *client : key->engine->id(), field, key->mode);
}

adoption read_adoption(std::shared_ptr<core> const& engine, std::string_view token) {
  auto hold = read_token(token);
  std::uint64_t number = 0;
  auto const colon = hold ? hold->owner.rfind(':') : std::string::npos;
  if (!hold || hold->names.size() != 1 || hold->names.front().size() > longest_adopted_name ||
      !has_number(*hold, number))
    throw lock_error(errc::bad_argument, "that is not the token of a hold on one lock");
  for (auto const& entry : all_words) {
    if (entry.word != hold->kind) continue;
    auto key =
        std::make_shared<single_lock const>(engine, std::move(hold->names.front()), entry.which(*engine), entry.mode);
    auto const fence = hold->fence.value_or(0);
    hold->owner.resize(colon);
    if (hold->owner == engine->id()) return {std::move(key), number, number, nullptr, fence};
    auto client = std::make_shared<std::string const>(std::move(hold->owner));
    return {std::move(key), owner_access::number(owner::make()), number, std::move(client), fence};
  }
  throw lock_error(errc::bad_argument, "a token of the kind '" + hold->kind + "' cannot be adopted");
}

std::string token_of(lock_key const& key, std::string owner, std::uint64_t fence) {
  hold_token hold{.names = {key.name}, .owner = std::move(owner)};
  for (auto const& entry : all_words)
    if (entry.name == key.which->rules().name && entry.mode == key.mode) hold.kind = entry.word;
  if (fence != 0) hold.fence = fence;
  return write_token(hold);
}

}  // namespace latchkey::detail

namespace latchkey {

namespace {

using detail::adoption;
using detail::operation;
using adopted_handler = detail::handler<void(error_code, lease)>;

std::shared_ptr<detail::lease_state> state_of(adoption const& what) {
  auto made =
      std::make_shared<detail::lease_state>(what.key, detail::owner_access::from(what.owner), acquire_options());
  if (what.fence != 0) made->set_token(what.fence);
  return made;
}

detail::refusal fill_question(operation& call, adoption const& what) {
  auto wrong = fill_query(call, *what.key, detail::query::rest, std::nullopt);
  call.argument = std::make_shared<std::string const>(what.shown());
  return wrong;
}

detail::refusal fill_hold(operation& call, adoption const& what, detail::lease_state& state, operation const& asked) {
  auto wrong = fill_adopt(call, *what.key, state.who(), asked);
  call.field = what.field;
  call.argument = what.client;
  call.link = &state;
  return wrong;
}

bool is_there(operation const& asked) { return asked.value == -1 || asked.value > 0; }

// Asks, and then takes up what is there.
class async_adoption : public std::enable_shared_from_this<async_adoption> {
 public:
  async_adoption(adoption what, adopted_handler done)
      : what_(std::move(what)),
        fallback_(executor_of(*what_.key)),
        where_(asio::prefer(asio::get_associated_executor(done, fallback_), asio::execution::outstanding_work.tracked)),
        done_(std::move(done)) {}

  void ask() {
    auto const take = [self = shared_from_this()](operation const& call) {
      self->asked_.started = call.started;
      self->asked_.value = call.value;
      return std::tuple(call.error);
    };
    detail::handler<void(error_code)> then(
        [self = shared_from_this()](error_code const& failed) { self->answered(failed); });
    auto call = detail::make_async_call(*what_.key, what_.key, std::move(then), take);
    call->begin(fill_question(*call, what_));
  }

 private:
  void answered(error_code const& failed) {
    if (failed || !is_there(asked_))
      return detail::complete_later<lease>(what_.key->engine, std::move(done_), failed, lease());
    auto state = state_of(what_);
    auto& link = *state;
    std::shared_ptr<void const> kept = state;
    auto call =
        detail::make_async_call(*what_.key, std::move(kept), std::move(done_), detail::give_lease{std::move(state)});
    call->begin(fill_hold(*call, what_, link, asked_));
  }

  adoption what_;
  asio::any_io_executor fallback_;
  asio::any_completion_executor where_;  // keeps it running
  adopted_handler done_;
  operation asked_;
};

}  // namespace

lease client::adopt(std::string_view token) const {
  if (!core_) throw lock_error(errc::closed, "the client was moved from");
  if (core_->forked()) throw lock_error(errc::closed, "the client belongs to the parent process");
  auto const what = detail::read_adoption(core_, token);
  detail::check_blocking(*what.key);
  detail::blocking_call asked;
  throw_if(fill_question(asked, what));
  what.key->run(asked);
  throw_if(asked);
  if (!is_there(asked)) return {};
  auto state = state_of(what);
  detail::blocking_call call;
  throw_if(fill_hold(call, what, *state, asked));
  what.key->run(call);
  throw_if(call);
  if (!call.yes) return {};
  state->granted(call);
  return detail::lease_state::make_lease(std::move(state));
}

void client::start_adopt(std::shared_ptr<detail::core> const& core, std::string_view token, adopted_handler done) try {
  if (!core || core->forked())
    return detail::complete_later<lease>(asio::system_executor(), std::move(done), errc::closed, lease());
  std::make_shared<async_adoption>(detail::read_adoption(core, token), std::move(done))->ask();
} catch (lock_error const& error) {
  detail::complete_later<lease>(core, std::move(done), error.code(), lease());
}

}  // namespace latchkey
