#pragma once

#include <codec/reply.hpp>
#include <wire/node_address.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace latchkey::detail {

// Where the master is, by SENTINEL GET-MASTER-ADDR-BY-NAME. In the middle of a failover SENTINEL MASTER still shows the
// one before, though under the new epoch. None: an answer of another form.
std::optional<node_address> read_address(reply const& answer);

// The epoch of the master's configuration, by SENTINEL MASTER: it rises with each failover.
std::optional<std::uint64_t> read_epoch(reply const& answer);

// How many replicas it has, by the same. 0: the answer does not say.
std::size_t read_replicas(reply const& answer);

// Of SENTINEL SENTINELS: those beside the one that was asked, as far as their addresses can be read.
std::vector<node_address> read_sentinels(reply const& answer);

// Where sentinels say that a master is replaced. The one that leads a failover names the new one from its promotion on,
// and says `switched` only when all other replicas follow that, or the failover's time is over.
constexpr std::string_view switched = "+switch-master";
constexpr std::string_view promoted = "+failover-state-reconf-slaves";

// Does this message concern the master of this name?
bool switches(std::string_view channel, std::string_view payload, std::string_view master);

// It does not know a master of this name.
bool names_no_master(reply const& answer);

}  // namespace latchkey::detail
