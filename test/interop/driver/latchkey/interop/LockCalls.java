package latchkey.interop;

import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.redisson.RedissonMultiLock;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Calls of every kind of lock. Times are milliseconds; a lease of -1 leaves the renewal to the watchdog. */
final class LockCalls {
  private final List<RedissonClient> clients;

  LockCalls(List<RedissonClient> clients) {
    this.clients = clients;
  }

  RLock find(Call call) {
    RedissonClient client = clients.get(0);
    return switch (call.kind()) {
      case "lock" -> client.getLock(call.name());
      case "lock_on_1" -> clients.get(1).getLock(call.name());
      case "lock_on_2" -> clients.get(2).getLock(call.name());
      case "non_reentrant_lock" -> client.getNonReentrantLock(call.name());
      case "fair_lock" -> client.getFairLock(call.name());
      case "spin_lock" -> client.getSpinLock(call.name());
      case "fenced_lock" -> client.getFencedLock(call.name());
      case "read_lock" -> client.getReadWriteLock(call.name()).readLock();
      case "write_lock" -> client.getReadWriteLock(call.name()).writeLock();
      case "multi_lock" -> new RedissonMultiLock(members(call));
      case "red_lock" -> new RedissonRedLock(members(call));
      default -> throw new IllegalArgumentException("no such kind: " + call.kind());
    };
  }

  /** One on each server, as far as there are servers. */
  private RLock[] members(Call call) {
    return IntStream.range(0, call.names().size())
        .mapToObj(i -> clients.get(Math.min(i, clients.size() - 1)).getLock(call.names().get(i)))
        .toArray(RLock[]::new);
  }

  Object make(Call call) throws InterruptedException {
    RLock lock = find(call);
    switch (call.operation()) {
      case "lock":
        if (call.has(0)) {
          lock.lock(call.number(0), TimeUnit.MILLISECONDS);
        } else {
          lock.lock();
        }
        return "held";
      case "try_lock":
        return call.has(0) ? lock.tryLock(call.number(0), call.number(1), TimeUnit.MILLISECONDS) : lock.tryLock();
      case "unlock":
        lock.unlock();
        return "released";
      case "force_unlock":
        return lock.forceUnlock();
      case "is_locked":
        return lock.isLocked();
      case "is_held":
        return lock.isHeldByCurrentThread();
      case "hold_count":
        return lock.getHoldCount();
      case "remaining":
        return lock.remainTimeToLive();
      case "owner":
        return Thread.currentThread().getId();
      case "token":
        return clients.get(0).getFencedLock(call.name()).getToken();
      case "lock_and_get_token":
        return clients.get(0).getFencedLock(call.name()).lockAndGetToken();
      default:
        throw new IllegalArgumentException("no such operation: " + call.operation());
    }
  }
}
