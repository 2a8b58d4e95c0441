#include <fuzz/driver.hpp>

// The bytes are settings and then events, a letter each: see driver.cpp.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* bytes, std::size_t size) {
  latchkey::fuzz::driver({bytes, size}).play();
  return 0;
}
