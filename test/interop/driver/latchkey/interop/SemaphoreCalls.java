package latchkey.interop;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/** Calls of semaphores. */
final class SemaphoreCalls {
  private final RedissonClient client;

  SemaphoreCalls(RedissonClient client) {
    this.client = client;
  }

  Object make(Call call) throws InterruptedException {
    RSemaphore semaphore = client.getSemaphore(call.name());
    switch (call.operation()) {
      case "try_set_permits":
        return semaphore.trySetPermits((int) call.number(0));
      case "add_permits":
        semaphore.addPermits((int) call.number(0));
        return "added";
      case "drain_permits":
        return semaphore.drainPermits();
      case "available_permits":
        return semaphore.availablePermits();
      case "acquire":
        semaphore.acquire((int) call.number(0));
        return "acquired";
      case "try_acquire":
        return semaphore.tryAcquire((int) call.number(0), call.number(1), TimeUnit.MILLISECONDS);
      case "release":
        semaphore.release((int) call.number(0));
        return "released";
      default:
        throw new IllegalArgumentException("no such operation: " + call.operation());
    }
  }
}
