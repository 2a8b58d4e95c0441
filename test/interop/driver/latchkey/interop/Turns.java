package latchkey.interop;

import java.util.List;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/**
 * {@code turns KIND NAME KEYS TARGET MILLISECONDS}: takes the lock again and again, each time reads the number at each
 * key, adds one and writes it back, until the first number has reached the target or the time is over. Answers four
 * numbers: turns taken, locks that failed, turns in which reading or writing failed, unlocks that failed.
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
    List<RBucket<String>> numbers = List.of(call.arguments().get(0).split(",")).stream()
        .map(key -> client.<String>getBucket(key, StringCodec.INSTANCE))
        .toList();
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(call.number(2));
    long taken = 0;
    long failedLocks = 0;
    long failedTurns = 0;
    long failedUnlocks = 0;
    boolean reached = false;
    while (!reached && System.nanoTime() < end) {
      try {
        lock.lock();
      } catch (RuntimeException problem) {
        failedLocks++;
        continue;
      }
      try {
        long before = number(numbers.get(0));
        reached = before >= call.number(1);
        if (!reached) {
          numbers.get(0).set(Long.toString(before + 1));
          numbers.stream().skip(1).forEach(number -> number.set(Long.toString(number(number) + 1)));
          taken++;
        }
      } catch (RuntimeException problem) {
        failedTurns++;
      } finally {
        try {
          lock.unlock();
        } catch (RuntimeException problem) {
          failedUnlocks++;
        }
      }
    }
    return taken + " " + failedLocks + " " + failedTurns + " " + failedUnlocks;
  }

  private static long number(RBucket<String> bucket) {
    String value = bucket.get();
    return value == null ? 0 : Long.parseLong(value);
  }
}
