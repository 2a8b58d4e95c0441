package latchkey.interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.ReadMode;

/**
 * Does with Redisson what it is told, one line at a time.
 *
 * <p>Usage: {@code Driver WATCHDOG_TIMEOUT_MS FAIR_LOCK_WAIT_TIMEOUT_MS URI...}, one Redisson for each URI; a wait
 * timeout of 0 is Redisson's own. First it says {@code ready} and the id of each. Then a line {@code NUMBER WORKER OPERATION KIND NAME ARGUMENT...} is a call that the thread WORKER makes;
 * calls of different workers run beside each other. Names are percent-encoded. Each call is answered by one line,
 * {@code NUMBER NANOSECONDS ok VALUE} or {@code NUMBER NANOSECONDS failed EXCEPTION}, with the monotonic clock of the
 * machine when it returned. The process ends with its input.
 */
public final class Driver {
  private final Map<String, Worker> workers = new ConcurrentHashMap<>();
  private final Calls calls;

  private Driver(Calls calls) {
    this.calls = calls;
  }

  public static void main(String[] arguments) throws IOException {
    long watchdogTimeout = Long.parseLong(arguments[0]);
    long fairLockWaitTimeout = Long.parseLong(arguments[1]);
    List<RedissonClient> clients = new ArrayList<>();
    for (int i = 2; i < arguments.length; i++) {
      clients.add(connect(arguments[i], watchdogTimeout, fairLockWaitTimeout));
    }
    StringBuilder ready = new StringBuilder("ready");
    clients.forEach(client -> ready.append(' ').append(client.getId()));
    say(ready.toString());
    new Driver(new Calls(clients)).run();
    // Without a shutdown: what is held when the input ends is to be found as a process leaves it that dies.
    Runtime.getRuntime().halt(0);
  }

  private static RedissonClient connect(String uri, long watchdogTimeout, long fairLockWaitTimeout) {
    Config config = new Config();
    config.setLockWatchdogTimeout(watchdogTimeout);
    if (fairLockWaitTimeout > 0) {
      config.setFairLockWaitTimeout(fairLockWaitTimeout);
    }
    if (uri.startsWith("redis-cluster://")) {
      config.useClusterServers()
          .addNodeAddress(addresses(uri.substring("redis-cluster://".length())))
          .setClientName("redisson")
          .setMasterConnectionPoolSize(16)
          .setMasterConnectionMinimumIdleSize(2)
          .setScanInterval(1000);
      return Redisson.create(config);
    }
    if (uri.startsWith("redis-sentinel://")) {
      var parts = uri.substring("redis-sentinel://".length()).split("/");
      config.useSentinelServers()
          .addSentinelAddress(addresses(parts[0]))
          .setMasterName(parts[1])
          .setReadMode(ReadMode.MASTER)
          .setClientName("redisson")
          .setMasterConnectionPoolSize(16)
          .setMasterConnectionMinimumIdleSize(2)
          .setScanInterval(1000);
      return Redisson.create(config);
    }
    config.useSingleServer()
        .setAddress(uri)
        .setClientName("redisson")
        .setConnectionPoolSize(16)
        .setConnectionMinimumIdleSize(2);
    return Redisson.create(config);
  }

  // Of `host:port,host:port`.
  private static String[] addresses(String nodes) {
    return Arrays.stream(nodes.split(",")).map(node -> "redis://" + node).toArray(String[]::new);
  }

  private void run() throws IOException {
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      Call call = Call.parse(line);
      workers.computeIfAbsent(call.worker(), Worker::new).execute(() -> answer(call));
    }
  }

  private void answer(Call call) {
    String result;
    try {
      result = "ok " + make(call);
    } catch (Exception | LinkageError problem) {
      result = "failed " + problem.getClass().getSimpleName();
    }
    say(call.number() + " " + System.nanoTime() + " " + result);
  }

  /** {@code await_blocked KIND NAME WORKER MILLISECONDS} is about another worker; all else is Redisson's. */
  private Object make(Call call) throws Exception {
    if (call.operation().equals("await_blocked")) {
      return workers.get(call.arguments().get(0)).awaitBlocked(call.number(1)) ? "blocked" : "running";
    }
    return calls.make(call);
  }

  private static synchronized void say(String line) {
    System.out.println(line);
    System.out.flush();
  }
}
