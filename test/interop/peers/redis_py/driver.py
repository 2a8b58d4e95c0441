"""driver.py URI: holds locks with redis-py's Lock as it is told, in the lines of Driver.java:

    NUMBER WORKER OPERATION plain_lock NAME ARGUMENT...

Operations: `acquire WAIT_MS LEASE_MS`, `extend LEASE_MS`, `release`. The process ends with its input.
"""

import queue
import sys
import threading
import time
import urllib.parse

import redis


class Locks:
    """The locks of one worker."""

    def __init__(self, client):
        self.client = client
        self.held = {}

    def make(self, operation, name, arguments):
        if operation == "acquire":
            wait, lease = (int(one) / 1000 for one in arguments)
            lock = self.client.lock(name, timeout=lease)
            got = lock.acquire(blocking_timeout=wait) if wait > 0 else lock.acquire(blocking=False)
            if got:
                self.held[name] = lock
            return "true" if got else "false"
        if operation == "extend":
            return "true" if self.held[name].extend(int(arguments[0]) / 1000, replace_ttl=True) else "false"
        if operation == "release":
            self.held[name].release()
            return "released"
        raise ValueError(f"no such operation: {operation}")


class Worker:
    """A thread that makes its calls one after the other."""

    def __init__(self, client):
        self.locks = Locks(client)
        self.calls = queue.Queue()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            number, operation, name, arguments = self.calls.get()
            try:
                result = "ok " + self.locks.make(operation, name, arguments)
            except Exception as problem:  # whatever it is, it is the answer
                result = f"failed {type(problem).__name__}"
            print(number, time.monotonic_ns(), result, flush=True)


def main():
    client = redis.Redis.from_url(sys.argv[1])
    client.ping()
    print("ready", f"redis-py-{redis.__version__}", flush=True)
    workers = {}
    for line in sys.stdin:
        number, worker, operation, _, name, *arguments = line.split()
        if worker not in workers:
            workers[worker] = Worker(client)
        workers[worker].calls.put((number, operation, urllib.parse.unquote(name), arguments))


main()
