#include <machine/fleet.hpp>

#include <machine/cluster_guide.hpp>
#include <machine/name_machine.hpp>
#include <machine/sentinel_guide.hpp>

#include <algorithm>

namespace latchkey::detail {

namespace {

// Who sent it there says the same again, perhaps: it rests before it asks once more.
template <class Request>
void go_back(Request& one, detour& sent_on, outbox& there) {
  bool const asked = sent_on.take_asking();
  if (asked) sent_on.tire();
  there.add(one);
  if (asked) there.rest(sent_on);
}

enum class strays { all, connects };

// True: of those that only want a connection.
bool send_back_calls(outbox& from, plain_calls const& plain, strays which = strays::all) {
  bool connects = false;
  std::vector<operation*> stray;
  for (auto& call : from.plain()) {
    bool const meant = which == strays::all || call.what == operation::type::connect;
    if (meant && &plain.requests_of(call) != &from) stray.push_back(&call);
  }
  for (operation* call : stray) {
    connects = connects || call->what == operation::type::connect;
    from.remove(*call);
    go_back(*call, call->sent_on, plain.requests_of(*call));
  }
  return connects;
}

bool send_back_calls(std::vector<std::unique_ptr<shard>> const& from, plain_calls const& plain, strays which) {
  bool connects = false;
  for (auto const& shard : from) connects = send_back_calls(shard->names().requests, plain, which) || connects;
  return connects;
}

bool serves(std::unique_ptr<shard> const& one) { return one->serves(); }

}  // namespace

fleet::fleet(context& shared, topology given, plain_calls& plain, fleet_user& user)
    : shared_(shared), user_(user), plain_(plain), as_(std::move(given.as)), any_node_(shared, plain) {
  guided& me = *this;
  if (!given.cluster.nodes.empty())
    guide_ = std::make_unique<cluster_guide>(shared_, std::move(given.cluster), me);
  else if (!given.whom.seeds.empty())
    guide_ = std::make_unique<sentinel_guide>(shared_, std::move(given.whom), me);
  make_shard();
  if (!guide_) {
    first().begin();
    return;
  }
  shared_.secret = as_.password;
  first().names().away.words =
      one_for_all() ? "no sentinel has answered yet" : "no node of the cluster has answered yet";
}

fleet::~fleet() = default;

shard& fleet::make_shard() {
  shard_user& me = *this;
  return *shards_.emplace_back(std::make_unique<shard>(shared_, as_, plain_, me, !one_for_all()));
}

home& fleet::anywhere() {
  auto led = std::find_if(shards_.begin(), shards_.end(), serves);
  if (led == shards_.end())
    led = std::find_if(shards_.begin(), shards_.end(), [](auto const& shard) { return shard->now(); });
  return (led == shards_.end() ? first() : **led).names();
}

// --- the engine ---

void fleet::turn(io_actions& io) {
  if (guide_) guide_->turn(io);
  if (!one_for_all()) {
    any_node_.look(std::none_of(shards_.begin(), shards_.end(), serves));
    if (plain_.connecting() && send_back_calls(shards_, plain_, strays::connects)) want_direct(anywhere());
  }
  collect_debts();
  for (auto const& shard : shards_) shard->turn(io);
  if (!one_for_all()) let_go_of_empty_shards();
}

// Whoever asks a server now sends the KILLs that others owe to it first. docs/safety.md, "After a failover", rule 7.
void fleet::collect_debts() {
  for (auto const& owes : shards_) {
    if (!owes->owes()) continue;
    for (auto const& asks : shards_)
      if (asks->now()) owes->pass_debts(*asks->now());
  }
}

void fleet::let_go_of_empty_shards() {
  std::erase_if(shards_, [this](auto const& shard) {
    return shard != shards_.front() && shard->gone() && !user_.any_name_at(shard->names());
  });
}

void fleet::opened(std::uint32_t serial) {
  each_session([&](session& one) { one.links().opened(serial); });
  if (guide_) guide_->scout().opened(serial);
}

void fleet::open_failed(std::uint32_t serial, error_code const& why, std::string_view text) {
  each_session([&](session& one) { one.links().open_failed(serial, why, text); });
  if (guide_) guide_->scout().open_failed(serial, why, text);
}

void fleet::received(std::uint32_t serial, std::string_view bytes) {
  each_session([&](session& one) { one.received(serial, bytes); });
  if (guide_) guide_->scout().received(serial, bytes);
}

void fleet::broken(std::uint32_t serial, error_code const& why) {
  each_session([&](session& one) { one.links().broken(serial, why); });
  if (guide_) guide_->scout().broken(serial);
}

void fleet::on_link_timer(link& link) {
  session* its = nullptr;
  each_session([&](session& one) {
    if (one.links().has(link)) its = &one;
  });
  if (its) its->links().on_timer(link);
}

// --- direct lanes ---

shard& fleet::of(home const& names) {
  return **std::find_if(shards_.begin(), shards_.end(), [&](auto const& shard) { return &shard->names() == &names; });
}

session* fleet::idle_lane(home const& at) {
  shard& there = of(at);
  there.want_direct();
  return there.direct_idle() ? there.now() : nullptr;
}

session* fleet::lender_of(std::uint32_t serial) {
  for (auto const& shard : shards_)
    if (shard->lent(serial)) return shard->now();
  return nullptr;
}

// --- plain calls ---

void fleet::forget(operation& call) {
  each_session([&](session& one) { one.forget(call); });
}

void fleet::collect(std::vector<operation*>& calls) const {
  for (auto const& shard : shards_) shard->collect(calls);
}

// --- all that there is ---

bool fleet::idle() const {
  return std::all_of(shards_.begin(), shards_.end(), [](auto const& shard) { return shard->names().requests.empty(); });
}

void fleet::hurry() {
  each_session([](session& one) { one.links().hurry(); });
  if (guide_) guide_->scout().hurry();
}

void fleet::tell_all(error_code const& why, std::string_view text, bool transient) {
  for (auto const& shard : shards_) {
    shard->names().away.may_pass(text);
    trouble(*shard, why, text, transient);
  }
}

void fleet::snapshot(std::vector<node_stats>& out) const {
  for (auto const& shard : shards_)
    shard->snapshot(out, guide_ && shard->now() ? guide_->epoch_of(shard->now()->where()) : 0);
}

bool fleet::quiet() const {
  return std::all_of(shards_.begin(), shards_.end(), [](auto const& shard) { return shard->quiet(); });
}

bool fleet::settled() const {
  return std::all_of(shards_.begin(), shards_.end(), [](auto const& shard) { return shard->settled(); });
}

// --- what the shards have to say ---

void fleet::trouble(shard& of, error_code const& why, std::string_view text, bool transient) {
  user_.trouble(of.names(), why, text, transient);
  std::vector<operation*> plain;
  for (auto& call : of.names().requests.plain()) plain.push_back(&call);
  for (name_machine* name : send_back(of.names())) name->trouble(why, text, transient);
  for (operation* call : plain) {
    if (transient && plain_.goes_on(*call, why, text)) continue;
    call->text = text;
    plain_.expire(*call, why);
  }
}

void fleet::shaken() {
  if (guide_) guide_->scout().hurry();
}

void fleet::misled(shard& by) {
  if (guide_) guide_->misled(by);
}

home* fleet::redirected(shard& by, redirection const& to) { return guide_ ? guide_->redirected(by, to) : nullptr; }

bool fleet::needs_server(shard const& of) const {
  if (one_for_all()) return user_.needs_server();
  home const& names = of.names();
  return !names.requests.empty() || any_node_.wanted() ||
         (!shared_.closed() && (names.channels.wanted() || names.renewals.any()));
}

// --- what the guide has to say ---

void fleet::given_up(shard& shard) {
  send_back(shard.names());
  user_.moved(shard.names());
  shared_.released.leave(shard.names());
  shard.names().requests.take_told();  // nobody listens there any more
}

std::vector<name_machine*> fleet::send_back(home& from) {
  std::vector<owner_state*> owners;
  std::vector<renewal*> renewals;
  std::vector<name_machine*> names;
  for (unsigned char order = 0; order < outbox::orders; ++order)
    for (owner_state& state : from.requests.of(static_cast<outbox::order>(order)))
      if (state.of.at_ != &from) owners.push_back(&state);
  for (renewal& renewal : from.requests.renewals())
    if (renewal.of->of.at_ != &from) renewals.push_back(&renewal);
  for (owner_state* state : owners) {
    from.requests.remove(*state);
    go_back(*state, state->ask_.pending().sent_on, state->of.at_->requests);
    if (std::find(names.begin(), names.end(), &state->of) == names.end()) names.push_back(&state->of);
  }
  for (renewal* renewal : renewals) {
    from.requests.remove(*renewal);
    go_back(*renewal, renewal->sent_on, renewal->of->of.at_->requests);
  }
  if (send_back_calls(from.requests, plain_)) want_direct(anywhere());
  return names;
}

// What a retired session had not answered found no server of its name: it stands where names are that have none.
void fleet::moved(home& at) {
  if (send_back_calls(first().names().requests, plain_)) want_direct(anywhere());
  user_.moved(at);
}

void fleet::move_names() {
  user_.move_names([this](std::string_view name) -> home& { return at(name); });
  if (send_back_calls(shards_, plain_, strays::all)) want_direct(anywhere());
  shared_.out->turn = true;
}

}  // namespace latchkey::detail
