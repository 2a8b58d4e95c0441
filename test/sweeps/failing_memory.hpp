#pragma once

namespace latchkey::test {

// The program's operator new, of which one allocation can be made to fail.
struct failing_memory {
  // The allocation after the next `n` ones of this thread fails, once.
  static void fail_after(long n);
  // The same, counting those of all threads.
  static void fail_anywhere_after(long n);
  // No longer. True: one has failed.
  static bool stop();
};

}  // namespace latchkey::test
