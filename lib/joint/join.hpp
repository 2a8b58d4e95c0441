#pragma once

#include <engine/lock_key.hpp>

#include <memory>
#include <vector>

namespace latchkey::detail {

// A lock of all of these or of a majority of them. Equal ones of a client are one object.
// \throws lock_error: they make no lock.
std::shared_ptr<lock_key const> join(std::shared_ptr<core> const& engine,
                                     std::vector<std::shared_ptr<lock_key const>> members, bool majority);

}  // namespace latchkey::detail
