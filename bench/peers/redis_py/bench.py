"""bench.py URI: the work of scripts/bench peers, with redis-py's Lock. Prints one line of JSON."""

import json
import statistics
import sys
import threading
import time

import redis

LEASE = 30


def pair(client):
    lock, times = client.lock("bench:peer:pair", timeout=LEASE), []
    for _ in range(5_000):
        began = time.perf_counter()
        lock.acquire()
        lock.release()
        times.append(time.perf_counter() - began)
    return statistics.median(times[1_000:]) * 1e6


def callers(client, count, locks, seconds=5):
    counts, barrier, end = [0] * count, threading.Barrier(count), time.monotonic() + 3600

    def work(me):
        nonlocal end
        lock = client.lock(f"bench:peer:{locks}:{me % locks}", timeout=LEASE)
        if barrier.wait() == 0:
            end = time.monotonic() + seconds
        while time.monotonic() < end:
            lock.acquire()
            if time.monotonic() < end:
                counts[me] += 1
            lock.release()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    squares = sum(one * one for one in counts)
    return sum(counts) / seconds, sum(counts) ** 2 / (count * squares) if squares else 0


def main():
    client = redis.Redis.from_url(sys.argv[1])
    crowd, _ = callers(client, 64, 64)
    one_lock, jain = callers(client, 8, 1)
    print(json.dumps({"name": "redis-py " + redis.__version__, "crowd_of": "64 threads",
                      "work": {"pair": pair(client), "crowd": crowd, "one_lock": one_lock, "one_lock_jain": jain}}))


main()
