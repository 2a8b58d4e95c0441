package latchkey.interop;

import org.redisson.api.RLock;
import org.redisson.api.RBucket;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/**
 * {@code turns KIND NAME KEY COUNT}: takes the lock so often, each time reads the number at KEY, adds one and writes it
 * back. Answers how many turns it took, and how many unlocks failed.
 */
final class Turns {
  private final RedissonClient client;
  private final LockCalls locks;

  Turns(RedissonClient client, LockCalls locks) {
    this.client = client;
    this.locks = locks;
  }

  Object take(Call call) {
    RLock lock = locks.find(call);
    RBucket<String> number = client.getBucket(call.arguments().get(0), StringCodec.INSTANCE);
    long taken = 0;
    long failed = 0;
    for (long i = 0; i < call.number(1); i++) {
      try {
        lock.lock();
      } catch (RuntimeException problem) {
        failed++;
        continue;
      }
      try {
        String before = number.get();
        number.set(Long.toString(before == null ? 1 : Long.parseLong(before) + 1));
        taken++;
      } finally {
        try {
          lock.unlock();
        } catch (RuntimeException problem) {
          failed++;
        }
      }
    }
    return taken + " " + failed;
  }
}
