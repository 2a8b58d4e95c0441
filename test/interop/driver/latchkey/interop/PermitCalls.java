package latchkey.interop;

import java.util.concurrent.TimeUnit;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RedissonClient;

/** Calls of semaphores whose permits have ids and leases. */
final class PermitCalls {
  private final RedissonClient client;

  PermitCalls(RedissonClient client) {
    this.client = client;
  }

  Object make(Call call) throws InterruptedException {
    RPermitExpirableSemaphore semaphore = client.getPermitExpirableSemaphore(call.name());
    switch (call.operation()) {
      case "try_set_permits":
        return semaphore.trySetPermits((int) call.number(0));
      case "set_permits":
        semaphore.setPermits((int) call.number(0));
        return "set";
      case "add_permits":
        semaphore.addPermits((int) call.number(0));
        return "added";
      case "available_permits":
        return semaphore.availablePermits();
      case "acquired_permits":
        return semaphore.acquiredPermits();
      case "try_acquire":
        return semaphore.tryAcquire(call.number(0), call.number(1), TimeUnit.MILLISECONDS);
      case "try_release":
        return semaphore.tryRelease(call.arguments().get(0));
      case "update_lease_time":
        return semaphore.updateLeaseTime(call.arguments().get(0), call.number(1), TimeUnit.MILLISECONDS);
      default:
        throw new IllegalArgumentException("no such operation: " + call.operation());
    }
  }
}
