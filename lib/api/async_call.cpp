#include <api/async_call.hpp>

#include <boost/asio/prefer.hpp>

#include <new>
#include <optional>

namespace latchkey::detail {

namespace {

// AddressSanitizer sees a use after the end only in memory that was really freed.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool keeps_blocks = false;
#elif defined(__has_feature)
constexpr bool keeps_blocks = !__has_feature(address_sanitizer);
#else
constexpr bool keeps_blocks = true;
#endif

constinit thread_local bool thread_ends = false;

struct spare_blocks {
  ~spare_blocks() {
    thread_ends = true;
    for (auto const& each : kept) ::operator delete(each.block);
  }

  struct spare {
    void* block = nullptr;
    std::size_t size = 0;
  };
  // Whoever is called with the end of a call begins another one before that is gone.
  spare kept[2];
};
thread_local spare_blocks spares;

}  // namespace

void* take_call_memory(std::size_t size) {
  if (!thread_ends)
    for (auto& each : spares.kept)
      if (each.size == size) return std::exchange(each, {}).block;
  return ::operator new(size);
}

void give_call_memory(void* block, std::size_t size) noexcept {
  if (keeps_blocks && !thread_ends) {
    auto& kept = spares.kept;
    for (auto& each : kept)
      if (!each.block) {
        each = {block, size};
        return;
      }
    // Nobody may ask for these sizes any more.
    std::swap(kept[0], kept[1]);
    block = std::exchange(kept[1], {block, size}).block;
  }
  ::operator delete(block);
}

async_call::async_call(core& engine, lock_key const* key, std::shared_ptr<void const> kept,
                       asio::cancellation_slot slot)
    : kept_(std::move(kept)),
      engine_(engine),
      key_(key),
      slot_(std::move(slot)),
      place_{engine.forked() ? asio::any_io_executor(asio::system_executor()) : engine.threads().tracked_executor(),
             {}} {}

async_call::~async_call() {
  if (posted_) engine_.threads().completed().arrived();  // nobody runs it any more
}

void async_call::run_on(asio::any_io_executor const& executor) {
  bool const forked = engine_.forked();
  // Its own is most often that of the client, and less often the same tracked.
  on_client_executor_ =
      !executor || (!forked && engine_.threads().is_handler_executor(executor)) || executor == place_.by;
  if (on_client_executor_) return;
  // The way to an executor of the user's is not to lead through his callbacks; but one that runs a handler wherever it
  // is given one must not run it on the thread for I/O.
  if (!forked && !executor.target<asio::system_executor>()) place_.by = engine_.threads().tracked_io_executor();
  place_.where = asio::prefer(executor, asio::execution::outstanding_work.tracked);
}

void async_call::run_on_other(asio::any_completion_executor const& executor) {
  bool const forked = engine_.forked();
  on_client_executor_ = executor == asio::any_completion_executor(place_.by) ||
                        (!forked && executor == asio::any_completion_executor(engine_.threads().handler_executor()));
  if (on_client_executor_) return;
  if (!executor.target<asio::system_executor>() && !forked) place_.by = engine_.threads().tracked_io_executor();
  other_ = std::make_unique<asio::any_completion_executor>(
      asio::prefer(executor, asio::execution::outstanding_work.tracked));
}

void async_call::begin(refusal const& wrong) {
  if (wrong) {
    error = wrong.code;
    text = wrong.text;
    return end();
  }
  self_ = shared_from_this();
  try {
    connect();
    key_->start(*this);
  } catch (...) {  // nothing has begun
    disconnect();
    self_.reset();
    throw;
  }
}

void async_call::end() {
  self_ = shared_from_this();
  complete();
}

void async_call::connect() {
  if ((what != type::acquire && what != type::connect) || !slot_.is_connected()) return;
  slot_.assign([weak = weak_from_this()](asio::cancellation_type asked) {
    constexpr auto accepted =
        asio::cancellation_type::terminal | asio::cancellation_type::partial | asio::cancellation_type::total;
    if ((asked & accepted) == asio::cancellation_type::none) return;
    // Too late is no harm: the machine leaves completed calls alone.
    if (auto self = weak.lock()) self->key_->cancel(*self);
  });
  connected_ = true;
}

void async_call::complete() noexcept {
  if (!engine_.threads().completed().keep(*this)) post();
}

void async_call::post() noexcept {
  engine_.threads().completed().posted();
  posted_ = true;
  // Whoever runs the handler may be done with it before the posting has returned.
  auto arrives = [call = std::move(self_)]() mutable {
    async_call& it = *call;
    it.self_ = std::move(call);
    it.arrive();
  };
  // By way of the client's executor, because the type of a handler's executor may have lost the ability to post.
  if (!other_) {
    handler_place const at = place_;
    at.post(std::move(arrives));
  } else {
    auto const by = place_.by;
    asio::post(by, asio::bind_executor(*other_, std::move(arrives)));
  }
}

void async_call::arrive() {
  posted_ = false;
  engine_.threads().completed().arrived();
  engine_.threads().completed().run(*this);
}

bool async_call::completes_on(asio::any_io_executor const& here) const noexcept {
  return usual() && here == engine_.threads().executor() && engine_.threads().completed().empty();
}

void async_call::call_handler() {
  auto const kept = std::move(self_);
  std::optional<executor_probe::mark> here;
  if (on_client_executor_) here.emplace(engine_.threads().probe());
  deliver();
}

void async_call::disconnect() {
  if (connected_) slot_.clear();
}

}  // namespace latchkey::detail
