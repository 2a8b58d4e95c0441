#pragma once

#include <simulation/randomness.hpp>
#include <torture/stage.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace latchkey::torture {

// In the order of record::code of faults.
std::vector<std::string> const& nemesis_names();
std::string nemesis_about(std::string const& name);

// Strikes again and again, as the seed says, and heals what it did.
class nemeses {
 public:
  nemeses(stage& on, std::vector<std::string> const& which, std::uint64_t seed);

  // Does what is due; comes back soon.
  void step();
  // Heals everything, and strikes no more.
  void heal();
  std::map<std::string, int> const& struck() const { return struck_; }

 private:
  struct wound {
    std::uint32_t which;
    std::int64_t begin, end;
    std::int64_t whom;
    std::function<bool()> heal;
  };

  void strike();
  std::int64_t next_strike();

  stage& on_;
  std::vector<std::uint32_t> which_;
  simulation::dice dice_;
  std::vector<wound> wounds_;
  std::map<std::string, int> struck_;
  std::int64_t const began_;
  std::int64_t next_;
};

// What a nemesis did, and how it ends.
struct blow {
  std::int64_t whom = 0;    // index of a worker, or number of a server
  std::int64_t length = 0;  // of time until it is healed
  // False: not yet possible, to be tried again.
  std::function<bool()> heal = [] { return true; };
};

// One that is healed as soon as its time is over.
template <class Heal>
blow healed_by(std::int64_t whom, std::int64_t length, Heal heal) {
  return {whom, length, [heal] {
            heal();
            return true;
          }};
}

struct nemesis {
  std::string name;
  std::string about;
  std::function<std::optional<blow>(stage&, simulation::dice&)> strike;
};

std::vector<nemesis> const& all_nemeses();

// Those of each file.
std::vector<nemesis> client_nemeses();
std::vector<nemesis> network_nemeses();
std::vector<nemesis> server_nemeses();
std::vector<nemesis> sickness_nemeses();
std::vector<nemesis> stranger_nemeses();

// Of a pause: mostly short, now and then up to three leases.
std::int64_t pause_length(stage const& on, simulation::dice& dice, std::uint64_t one_in_long);

}  // namespace latchkey::torture
