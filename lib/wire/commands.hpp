#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <wire/kind.hpp>

// What kinds can do beside being taken and given back. The numbers are those of item::command.
namespace latchkey::detail {

enum class semaphore_command : unsigned char { release, add, drain, try_set };

enum class permit_command : unsigned char { try_release, update, try_set, set, add, available, acquired };

enum class latch_command : unsigned char { count_down, try_set };

// A request that changes a number leaves a mark of its own for so long, in milliseconds: its repeated copy looks for
// that instead of changing the number once more.
inline constexpr std::int64_t mark_time = 20'000;

// The key of that mark. `request` is the field of the request, of which there is never another one.
std::string mark_of(std::string_view name, std::string_view request);

// Answers of the scripts of such kinds: `{value, told}`, where `told` is 0 if PUBLISH was refused, a verdict, or the
// text of an error.
outcome read_done(reply const& element);
// Of what takes: granted, `{granted, hint for the next}`, or a hint.
outcome read_taken(reply const& element);
// Of what gives back: released or absent.
outcome read_given_back(reply const& element);

// What belongs to nobody, but has a number, as permits do: whoever wants some queues.
class counted : public kind {
 public:
  // Sets what they have in common, too.
  explicit counted(traits t);

  std::string channel(std::string_view name, std::string_view field) const override;
  // By default any number above zero: what is counted differs from sender to sender.
  bool wakes(std::string_view message) const override;
  admission admit(unsigned char mode, int const* live) const final;
};

}  // namespace latchkey::detail
