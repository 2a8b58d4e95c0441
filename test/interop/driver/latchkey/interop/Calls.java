package latchkey.interop;

import java.util.List;
import org.redisson.api.RedissonClient;

/** Finds who can make a call. */
final class Calls {
  private final LockCalls locks;
  private final SemaphoreCalls semaphores;
  private final PermitCalls permits;
  private final LatchCalls latches;
  private final Turns turns;

  Calls(List<RedissonClient> clients) {
    RedissonClient first = clients.get(0);
    locks = new LockCalls(clients);
    semaphores = new SemaphoreCalls(first);
    permits = new PermitCalls(first);
    latches = new LatchCalls(first);
    turns = new Turns(first, locks);
  }

  Object make(Call call) throws Exception {
    if (call.operation().equals("turns")) {
      return turns.take(call);
    }
    return switch (call.kind()) {
      case "semaphore" -> semaphores.make(call);
      case "permit_semaphore" -> permits.make(call);
      case "count_down_latch" -> latches.make(call);
      default -> locks.make(call);
    };
  }
}
