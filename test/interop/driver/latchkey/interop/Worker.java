package latchkey.interop;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** A thread with a name: Redisson's locks belong to threads. */
final class Worker {
  private final ExecutorService thread;

  Worker(String name) {
    thread = Executors.newSingleThreadExecutor(task -> {
      Thread made = new Thread(task, name);
      made.setDaemon(true);
      return made;
    });
  }

  void execute(Runnable task) {
    thread.execute(task);
  }
}
