#include <latchkey/with_lock.hpp>

namespace latchkey::detail {

void rethrow_as_lock_error(std::exception_ptr const& problem) {
  try {
    std::rethrow_exception(problem);
  } catch (lock_error const&) {
    throw;
  } catch (boost::system::system_error const& known) {
    throw lock_error(known.code());
  }
}

}  // namespace latchkey::detail
