#include <simulation/kinds.hpp>
#include <wire/kinds.hpp>

namespace latchkey::simulation {

namespace {

// The key is a string: the field of who has it.
class plain final : public simulated_kind {
 public:
  plain() : simulated_kind("plain", detail::plain_kind()) {}

  server_hold look(keyspace& data, std::string const& lock, std::string const& field) const override {
    auto const* const there = data.find(lock);
    auto const* const holder = there ? std::get_if<keyspace::text_value>(&there->holds) : nullptr;
    if (!holder || *holder != field) return {};
    return {1, there->ends};
  }

  std::vector<std::string> holders(keyspace& data, std::string const& lock) const override {
    auto const* const there = data.find(lock);
    auto const* const holder = there ? std::get_if<keyspace::text_value>(&there->holds) : nullptr;
    return holder ? std::vector{*holder} : std::vector<std::string>{};
  }
};

}  // namespace

std::unique_ptr<simulated_kind> plain_kind() { return std::make_unique<plain>(); }

}  // namespace latchkey::simulation
