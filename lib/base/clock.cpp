#include <base/clock.hpp>

namespace latchkey::detail {

constinit clock_offset process_clock;

}  // namespace latchkey::detail
