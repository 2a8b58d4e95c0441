#pragma once

#include <support/unit/fake_server.hpp>
#include <wire/kind.hpp>

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>

namespace latchkey::test {

// A lock kind that exists in tests only: the items of the reentrant lock, with scripts, channels and rules of its own.
class made_kind final : public detail::kind {
 public:
  explicit made_kind(traits t);
  ~made_kind() override;

  std::string channel(std::string_view name, std::string_view field) const override;
  void add_field(std::string& out, std::string_view client_id, std::uint64_t owner, unsigned char mode) const override;
  detail::script const& script_for(detail::ask what) const override;
  detail::script const* acquire_all() const override { return &all_; }
  void add_keys(detail::item const& one, detail::words& command) const override;
  void add_arguments(detail::item const& one, detail::words& command) const override;
  detail::outcome read(detail::ask what, detail::item const& one, reply const& answer) const override;
  bool wakes(std::string_view message) const override;
  admission admit(unsigned char mode, int const* live) const override;
  // Command 0 goes again when its answer was lost, and on when its caller has left; 1 does neither; 2 goes again.
  detail::script const& command_script(unsigned char command) const override;
  command_rules rules_of(unsigned char command) const override;

  // Teaches a server what its scripts do: as the reentrant lock.
  void teach(fake_server& server) const;
  // ... as a lock that so many fields may hold at once; a release publishes.
  void teach_shared(fake_server& server, std::size_t most) const;
  // ... as a read-write lock: fields that end in ":write" exclude all others.
  void teach_read_write(fake_server& server) const;
  // ... as a queue on the server: who tries and fails stands in it, whoever leaves or releases tells the new first one
  // on its own channel.
  void teach_queue(fake_server& server, std::deque<std::string>& queue) const;
  // ... as a number of places that nobody owns: a taker leaves a mark, by which a repeated one knows that it was
  // served; a command adds to the number.
  void teach_places(fake_server& server) const;

 private:
  static constexpr std::size_t asks = 9;
  std::string body_name(detail::ask what) const;
  void teach_acquire(fake_server& server,
                     std::function<bool(script_world&, std::string const& key, std::string const& field)> free) const;
  void teach_release(fake_server& server) const;

  int const number_;
  std::string const all_text_;
  detail::script const all_;
  std::array<std::string, asks> texts_;
  std::array<std::optional<detail::script>, asks> scripts_;
};

}  // namespace latchkey::test
