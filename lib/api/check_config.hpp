#pragma once

#include <latchkey/config.hpp>

namespace latchkey::detail {

// \throws lock_error bad_argument: a setting is out of range; the text names it.
void check_config(config const& given);

}  // namespace latchkey::detail
