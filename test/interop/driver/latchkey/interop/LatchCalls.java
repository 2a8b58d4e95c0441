package latchkey.interop;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RedissonClient;

/** Calls of latches. */
final class LatchCalls {
  private final RedissonClient client;

  LatchCalls(RedissonClient client) {
    this.client = client;
  }

  Object make(Call call) throws InterruptedException {
    RCountDownLatch latch = client.getCountDownLatch(call.name());
    switch (call.operation()) {
      case "try_set_count":
        return latch.trySetCount(call.number(0));
      case "count_down":
        latch.countDown();
        return "counted";
      case "count":
        return latch.getCount();
      case "wait_for":
        return latch.await(call.number(0), TimeUnit.MILLISECONDS);
      default:
        throw new IllegalArgumentException("no such operation: " + call.operation());
    }
  }
}
