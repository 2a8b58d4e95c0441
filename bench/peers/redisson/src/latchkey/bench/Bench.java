package latchkey.bench;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.api.redisnode.RedisNode.InfoSection;
import org.redisson.api.redisnode.RedisNodes;
import org.redisson.config.Config;

/** The work of scripts/bench peers, with Redisson; "network": that of the group network. Prints one line of JSON. */
public final class Bench {
  private static final int HOLDS = 100_000;
  private static RedissonClient client;

  public static void main(String[] arguments) throws Exception {
    connect(arguments[0]);
    if (arguments.length > 2 && arguments[2].equals("network")) {
      network(arguments[0], arguments[1]);
      System.exit(0);
    }
    double pair = pair(20_000);
    double[] oneLock = callers(8, 1);
    connect(arguments[0]);
    Double renewals = renewals();
    connect(arguments[0]);
    double[] crowd = callers(1_000, 1_000);
    System.out.printf(
        "{\"name\": \"Redisson %s\", \"work\": {\"pair\": %.2f, \"crowd\": %.0f, \"one_lock\": %.0f,"
            + " \"one_lock_jain\": %.4f, \"renewals\": %s}, \"crowd_of\": \"1,000 threads\"}%n",
        arguments[1], pair, crowd[0], oneLock[0], oneLock[1],
        renewals);
    System.exit(0);
  }

  private static void network(String address, String version) throws InterruptedException {
    double pair = pair(1_000);
    double oneLock = callers(8, 1)[0];
    RedissonClient other = client;
    client = null;
    connect(address);
    double twoClients = callers(List.of(client, other), 2, 1, 5)[0];
    other.shutdown();
    System.out.printf(
        "{\"name\": \"Redisson %s\", \"work\": {\"pair\": %.2f, \"crowd\": %.0f, \"one_lock\": %.1f,"
            + " \"two_clients\": %.1f}}%n",
        version, pair, callers(1_000, 1_000)[0], oneLock, twoClients);
  }

  /** A new client: what is left of one work does not slow the next one down. */
  private static void connect(String address) {
    if (client != null) client.shutdown();
    Config config = new Config();
    // Patient: what else runs on the machine may slow it down, but ends no work.
    config.useSingleServer().setAddress(address).setTimeout(30_000).setRetryAttempts(20);
    client = Redisson.create(config);
  }

  /** The median of a free pair, in microseconds, when the JIT has compiled it. */
  private static double pair(int pairs) {
    RLock lock = client.getLock("bench:peer:pair");
    long[] times = new long[pairs];
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < times.length; ++i) {
        long began = System.nanoTime();
        lock.lock();
        lock.unlock();
        times[i] = System.nanoTime() - began;
      }
    }
    Arrays.sort(times);
    return times[times.length / 2] * 1e-3;
  }

  /** Pairs a second of all callers together, and Jain's index of their shares. */
  private static double[] callers(int callers, int locks) throws InterruptedException {
    callers(List.of(client), callers, locks, 3);
    return callers(List.of(client), callers, locks, 5);
  }

  private static double[] callers(List<RedissonClient> clients, int callers, int locks, int seconds)
      throws InterruptedException {
    CountDownLatch go = new CountDownLatch(1);
    long[] counts = new long[callers];
    long[] end = new long[1];
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < callers; ++i) {
      int me = i;
      Thread thread = new Thread(() -> {
        RLock lock = clients.get(me % clients.size()).getLock("bench:peer:" + locks + ":" + me % locks);
        try {
          go.await();
        } catch (InterruptedException problem) {
          return;
        }
        while (System.nanoTime() < end[0]) {
          lock.lock();
          if (System.nanoTime() < end[0]) ++counts[me];
          lock.unlock();
        }
      });
      thread.start();
      threads.add(thread);
    }
    end[0] = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
    go.countDown();
    for (Thread thread : threads) thread.join();
    double sum = 0, squares = 0;
    for (long count : counts) {
      sum += count;
      squares += (double) count * count;
    }
    return new double[] {sum / seconds, squares > 0 ? sum * sum / (callers * squares) : 0};
  }

  /** What the server spends on the renewals of many holds, in percent of a core. Null if they could not be taken. */
  private static Double renewals() throws InterruptedException {
    int takers = 16;  // as many as it has connections, and its renewals find none
    CountDownLatch taken = new CountDownLatch(takers);
    AtomicInteger held = new AtomicInteger();
    for (int t = 0; t < takers; ++t) {
      int first = t;
      new Thread(() -> {
        try {
          for (int i = first; i < HOLDS; i += takers) {
            client.getLock("bench:peer:held:" + i).lock();
            held.incrementAndGet();
          }
        } finally {
          taken.countDown();
        }
      }).start();
    }
    if (!taken.await(100, TimeUnit.SECONDS) || held.get() < HOLDS) {
      System.err.println("only " + held.get() + " of " + HOLDS + " holds were taken");
      return null;
    }
    double before = serverCpu();
    long began = System.nanoTime();
    Thread.sleep(30_000);
    return 100 * (serverCpu() - before) / ((System.nanoTime() - began) * 1e-9);
  }

  private static double serverCpu() {
    var info = client.getRedisNodes(RedisNodes.SINGLE).getInstance().info(InfoSection.CPU);
    return Double.parseDouble(info.get("used_cpu_user")) + Double.parseDouble(info.get("used_cpu_sys"));
  }
}
