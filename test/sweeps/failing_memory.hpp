#pragma once

namespace latchkey::test {

// The program's operator new, of which one allocation of the calling thread can be made to fail.
struct failing_memory {
  // The allocation after the next `n` ones fails, once.
  static void fail_after(long n);
  // No longer. True: one has failed.
  static bool stop();
};

}  // namespace latchkey::test
