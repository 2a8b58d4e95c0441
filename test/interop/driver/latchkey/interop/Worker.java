package latchkey.interop;

import java.util.Arrays;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/** A thread with a name: Redisson's locks belong to threads. */
final class Worker {
  private final ExecutorService executor;
  private volatile Thread thread;

  Worker(String name) {
    executor = Executors.newSingleThreadExecutor(task -> {
      Thread made = new Thread(task, name);
      made.setDaemon(true);
      thread = made;
      return made;
    });
  }

  void execute(Runnable task) {
    executor.execute(task);
  }

  /**
   * Until the thread sleeps on the semaphore that a message of a lock releases. A message that comes after the
   * subscription and before that wakes nobody, if it is one that is meant for all waiters.
   */
  boolean awaitBlocked(long milliseconds) throws InterruptedException {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(milliseconds);
    while (System.nanoTime() < end) {
      boolean sleeps = Arrays.stream(thread.getStackTrace())
          .anyMatch(frame -> frame.getClassName().equals(Semaphore.class.getName()));
      if (sleeps) {
        return true;
      }
      Thread.sleep(1);
    }
    return false;
  }
}
