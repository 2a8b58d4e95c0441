#include <latchkey/error.hpp>

#include <cstdio>

// The smallest program that needs the library. It says where an error code's words come from.
int main() {
  auto const code = make_error_code(latchkey::errc::lease_lost);
  std::puts(code.category().name());
  return code ? 0 : 1;
}
