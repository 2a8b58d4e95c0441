#pragma once

#include <wire/kind.hpp>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace latchkey::test {

// What a script does with one item: the Lua of `item(keys..., arguments...)`, which may use `call`.
struct made_script {
  detail::ask what;
  std::string lua;
};
using made_scripts = std::vector<made_script>;

// A lock that three fields may hold at once; a release publishes.
made_scripts three_holders();
// A read-write lock: fields that end in ":write" exclude all others.
made_scripts two_sides();
// A queue on the server, the list `queue:{key}`: who tries and fails stands in it, whoever leaves or releases tells the
// new first one on its own channel.
made_scripts a_queue();
// A number of places that nobody owns: a taker leaves a mark, by which a repeated one knows that it was served; a
// command adds to the number.
made_scripts some_places();

// A lock kind that exists in tests only: the items of the reentrant lock, with channels and rules of its own, and with
// scripts that do what those of the reentrant lock do where it has none of its own. Lives as long as the program.
class made_kind final : public detail::kind {
 public:
  explicit made_kind(traits t, made_scripts const& own = {});

  std::string channel(std::string_view name, std::string_view field) const override;
  void add_field(std::string& out, std::string_view client_id, std::uint64_t owner, unsigned char mode) const override;
  detail::script const& script_for(detail::ask what) const override;
  detail::script const* acquire_all() const override { return all_; }
  void add_keys(detail::item const& one, detail::words& command) const override;
  void add_arguments(detail::item const& one, detail::words& command) const override;
  detail::outcome read(detail::ask what, detail::item const& one, detail::reply const& answer) const override;
  bool wakes(std::string_view message) const override;
  admission admit(unsigned char mode, int const* live) const override;
  // Command 0 goes again when its answer was lost, and on when its caller has left; 1 does neither; 2 goes again.
  detail::script const& command_script(unsigned char command) const override;
  command_rules rules_of(unsigned char command) const override;

 private:
  detail::script const* all_;
  std::array<detail::script const*, 9> scripts_{};  // by request
};

}  // namespace latchkey::test
