#include <simulation/kinds.hpp>
#include <wire/commands.hpp>
#include <wire/kinds.hpp>

#include <algorithm>

namespace latchkey::simulation {

namespace {

using detail::ask;

std::int64_t number_at(keyspace& data, std::string const& key) {
  auto const* const there = data.find(key);
  auto const* const value = there ? std::get_if<keyspace::text_value>(&there->holds) : nullptr;
  return value ? integer_of(*value).value_or(0) : 0;
}

// What is counted under the name itself. Marks of requests and claims go by themselves.
class counted : public simulated_kind {
 public:
  using simulated_kind::simulated_kind;

  server_hold look(keyspace&, std::string const&, std::string const&) const override { return {}; }
  std::vector<std::string> holders(keyspace&, std::string const&) const override { return {}; }
  bool may_share(task const&, task const&) const override { return true; }
  std::int64_t stock(keyspace& data, std::string const& lock) const override { return number_at(data, lock); }
  std::int64_t all(std::string const& lock) const override { return lock == "k" ? 2 : 3; }
  bool may_stay(std::string const& key) const override {
    return key == "k" || key == "other" || key.starts_with("latchkey_");
  }
  void prepare(server& at, std::string const& lock) const override {
    std::vector<std::string> const words = {"SET", lock, std::to_string(all(lock))};
    at.execute(words);
  }

 protected:
  using named_scripts = std::vector<std::pair<detail::script const*, char const*>>;
  template <class Command>
  void add(named_scripts& to, std::initializer_list<std::pair<Command, char const*>> commands) const {
    for (auto const& [command, called] : commands)
      to.emplace_back(&which.command_script(static_cast<unsigned char>(command)), called);
  }
};

class semaphore final : public counted {
 public:
  semaphore() : counted("semaphore", detail::semaphore_kind(), 1, use::number) {}

  // What a big request of another client has claimed is left alone.
  bool free(keyspace& data, std::string const& lock, std::string const& field, task const& waits) const override {
    std::int64_t claimed = 0;
    auto const* const there = data.find(detail::prefixed("latchkey_semaphore_claim", lock));
    auto const* const claim = there ? std::get_if<keyspace::text_value>(&there->holds) : nullptr;
    if (claim && !belongs(field, claim->substr(claim->find(' ') + 1)))
      claimed = integer_of(claim->substr(0, claim->find(' '))).value_or(0);
    return stock(data, lock) - claimed >= waits.amount;
  }

  named_scripts scripts() const override {
    using detail::semaphore_command;
    named_scripts made = {{&which.script_for(ask::acquire), "acquire"}, {&which.script_for(ask::release), "give_back"}};
    add<semaphore_command>(made, {{semaphore_command::release, "release_permits"},
                                  {semaphore_command::add, "add"},
                                  {semaphore_command::drain, "drain"},
                                  {semaphore_command::try_set, "try_set"}});
    return made;
  }
};

class latch final : public counted {
 public:
  latch() : counted("count_down_latch", detail::count_down_latch_kind(), 1, use::latch) {}

  bool free(keyspace& data, std::string const& lock, std::string const&, task const&) const override {
    return stock(data, lock) <= 0;
  }

  named_scripts scripts() const override {
    using detail::latch_command;
    named_scripts made = {{&which.script_for(ask::acquire), "wait"}};
    add<latch_command>(made, {{latch_command::count_down, "count_down"}, {latch_command::try_set, "try_set"}});
    return made;
  }
};

// A number of free permits, and a sorted set of the taken ones by the end of their leases. An ended one is free, though
// nobody may have counted it yet.
class permit_semaphore final : public counted {
 public:
  permit_semaphore() : counted("permit_semaphore", detail::permit_semaphore_kind(), 1, use::ids) {}

  bool belongs(std::string const& field, std::string const& client) const override {
    std::string const own = which.field(client, 0, 0);
    return field.size() == own.size() && field.compare(0, own.size() / 2, own, 0, own.size() / 2) == 0;
  }

  server_hold look(keyspace& data, std::string const& lock, std::string const& field) const override {
    server_hold made;
    for_each(data, lock, [&](double score, std::string const& id) {
      if (id != field || !lasts(data, score)) return;
      made.count = 1;
      made.ends = score >= never ? keyspace::forever : static_cast<std::int64_t>(score) - 1;
    });
    return made;
  }

  std::vector<std::string> holders(keyspace& data, std::string const& lock) const override {
    std::vector<std::string> made;
    for_each(data, lock, [&](double score, std::string const& id) {
      if (lasts(data, score)) made.push_back(id);
    });
    return made;
  }

  bool free(keyspace& data, std::string const& lock, std::string const&, task const&) const override {
    std::int64_t ended = 0;
    for_each(data, lock, [&](double score, std::string const&) { ended += !lasts(data, score); });
    return number_at(data, lock) + ended > 0;
  }

  std::int64_t stock(keyspace& data, std::string const& lock) const override {
    std::int64_t taken = 0;
    for_each(data, lock, [&](double, std::string const&) { ++taken; });
    return number_at(data, lock) + taken;
  }

  std::vector<std::string> keys(std::string const& lock) const override {
    return {lock, detail::suffixed(lock, "timeout")};
  }
  bool may_stay(std::string const& key) const override { return counted::may_stay(key) || key.ends_with(":timeout"); }

  named_scripts scripts() const override {
    using detail::permit_command;
    named_scripts made = {{&which.script_for(ask::acquire), "acquire"},
                          {&which.script_for(ask::release), "release"},
                          {&which.script_for(ask::extend), "extend"}};
    add<permit_command>(made, {{permit_command::try_release, "try_release"},
                               {permit_command::update, "update"},
                               {permit_command::try_set, "try_set"},
                               {permit_command::set, "set"},
                               {permit_command::add, "add"},
                               {permit_command::available, "available"},
                               {permit_command::acquired, "acquired"}});
    return made;
  }

 private:
  static constexpr double never = 922337203685477;

  static bool lasts(keyspace const& data, double score) { return score > static_cast<double>(data.now); }

  template <class Use>
  static void for_each(keyspace& data, std::string const& lock, Use use) {
    auto const* const there = data.find(detail::suffixed(lock, "timeout"));
    auto const* const permits = there ? std::get_if<keyspace::scored_value>(&there->holds) : nullptr;
    if (permits)
      for (auto const& [score, id] : *permits) use(score, id);
  }
};

}  // namespace

std::unique_ptr<simulated_kind> semaphore_kind() { return std::make_unique<semaphore>(); }
std::unique_ptr<simulated_kind> permit_semaphore_kind() { return std::make_unique<permit_semaphore>(); }
std::unique_ptr<simulated_kind> latch_kind() { return std::make_unique<latch>(); }

}  // namespace latchkey::simulation
