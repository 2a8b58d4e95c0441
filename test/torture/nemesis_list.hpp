#pragma once

#include <simulation/randomness.hpp>
#include <torture/stage.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace latchkey::torture {

// What a nemesis did, and how it ends.
struct blow {
  std::int64_t whom = 0;    // index of a worker, or number of a server
  std::int64_t length = 0;  // of time until it is healed
  // False: not yet possible, to be tried again.
  std::function<bool()> heal = [] { return true; };
};

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
