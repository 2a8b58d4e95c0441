"""R1 and R2 of `latchkey run`: the command runs only while the lease is valid, whatever stops or dies first."""

import concurrent.futures
import os
import pathlib
import random
import re
import signal
import subprocess
import time

import support
from support import Case, Server, STUBBORN, alive, children_of, processes_of, processes_with, state_of, wait_until

TELLS_TERM = """
trap 'echo TERM' TERM
echo began
while :; do sleep 0.02; done
"""
# On a busy machine.
LATE = 1.0


class Loss(Case):
    def test_R1_removed_on_the_server(self):
        """TERM at once, KILL after grace."""
        process = self.begin_run("--lease", "3s", "--grace", "0.6s", self.name, "sh", "-c", TELLS_TERM)
        self.server.cli("DEL", self.name)
        self.assertEqual(process.stdout.readline(), "TERM\n")
        told = time.monotonic()
        self.assertEqual(process.wait(support.PATIENCE), 79)
        self.assertGreater(time.monotonic() - told, 0.3)
        self.assertLess(time.monotonic() - told, 0.6 + LATE)
        self.assertEqual(processes_of(self.name), [])
        self.assertIn("lost", process.stderr.read())

    def test_R1_taken_by_somebody_else(self):
        """Their hold is left alone."""
        process = self.begin_run("--lease", "900ms", self.name, "sh", "-c", "echo began; exec sleep 60")
        self.server.cli("EVAL", "redis.call('del', KEYS[1]) redis.call('hset', KEYS[1], 'somebody:1', 1) "
                        "redis.call('pexpire', KEYS[1], 60000)", 1, self.name)
        self.assertEqual(process.wait(support.PATIENCE), 79)
        self.assertEqual(self.server.cli("HGETALL", self.name), "somebody:1\n1")

    def test_R1_kill(self):
        process = self.begin_run("--lease", "900ms", "--on-loss", "kill", self.name, "sh", "-c", TELLS_TERM)
        self.server.cli("DEL", self.name)
        self.assertEqual(process.wait(support.PATIENCE), 79)
        self.assertEqual(process.stdout.read(), "")

    def test_R1_ignore(self):
        process = self.begin_run("--lease", "600ms", "--grace", "100ms", "--on-loss", "ignore", "--result",
                                 self.folder / "result", self.name, "sh", "-c", "echo began; sleep 1.5; echo done")
        self.server.cli("DEL", self.name)
        self.assertEqual(process.wait(support.PATIENCE), 0)
        self.assertEqual(process.stdout.read(), "done\n")
        self.assertIn("goes on", process.stderr.read())
        self.assertIn('"outcome":"lost","exit":0', (self.folder / "result").read_text())

    def test_R1_no_answer(self):
        """TERM at the deadline less grace, KILL at the deadline."""
        server = Server()
        self.addCleanup(server.stop)
        process = self.begin_run("--lease", "1.5s", "--grace", "0.5s", self.name, "sh", "-c", TELLS_TERM,
                                 env={"LATCHKEY_URI": server.uri})
        paused = time.monotonic()
        server.pause()
        self.assertEqual(process.stdout.readline(), "TERM\n")
        told = time.monotonic()
        self.assert_dead(self.name, 0.5 + LATE)
        self.assertGreater(time.monotonic() - told, 0.4)
        self.assertLess(time.monotonic() - paused, 1.5 + LATE)
        server.resume()
        self.assertEqual(process.wait(support.PATIENCE), 79)

    def test_R1_no_answer_for_a_while(self):
        """A renewal that comes late, but in time, changes nothing."""
        server = Server()
        self.addCleanup(server.stop)
        process = self.begin_run("--lease", "3s", "--grace", "200ms", self.name, "sh", "-c",
                                 "echo began; sleep 3; echo done", env={"LATCHKEY_URI": server.uri})
        server.pause()
        time.sleep(1.6)  # the renewal was due at the first second
        server.resume()
        self.assertEqual(process.wait(support.PATIENCE), 0)
        self.assertEqual(process.stdout.read(), "done\n")

    def test_the_server_is_gone(self):
        """A waiter gives up 15 s after its server went; not one whose server has room for no second connection."""
        crowded, ends = support.Server("--maxclients", "1"), support.Server()
        for server, lease in ((crowded, 20_000), (ends, 60_000)):
            self.addCleanup(server.stop)
            server.cli("HSET", self.name, "stranger:1", "1")
            server.cli("PEXPIRE", self.name, lease)
        stays, leaves = (self.begin("run", "-v", self.name, "echo", "ran", env={"LATCHKEY_URI": server.uri})
                         for server in (crowded, ends))
        wait_until(lambda: ends.cli("PUBSUB", "NUMSUB", f"redisson_lock__channel:{{{self.name}}}")[-1] == "1")
        ends.process.kill()
        _, errors = leaves.communicate(timeout=30)
        self.assertEqual(leaves.returncode, 69, errors)
        self.assertIn("the server is gone", errors)
        said, errors = stays.communicate(timeout=30)
        self.assertEqual((stays.returncode, said), (0, "ran\n"), errors)
        self.assertIn("connect_failed", errors)

    def test_R1_stubborn_descendants(self):
        process = self.begin_run("--lease", "900ms", "--grace", "100ms", self.name, "sh", "-c", STUBBORN)
        wait_until(lambda: len(processes_of(self.name)) >= 4)
        self.server.cli("DEL", self.name)
        self.assertEqual(process.wait(support.PATIENCE), 79)
        self.assertEqual(processes_of(self.name), [])

    def test_R1_is_renewed(self):
        process = self.begin_run("--lease", "2s", self.name, "sh", "-c", "echo began; sleep 3.5")
        while process.poll() is None:
            if processes_of(self.name):
                self.assertTrue(int(self.server.cli("PTTL", self.name)) > 0 or not processes_of(self.name))
            time.sleep(0.02)
        self.assertEqual(process.returncode, 0)

    def test_max_hold(self):
        began = time.monotonic()
        made = self.latchkey("run", "--max-hold", "700ms", "--grace", "200ms", "--lease", "1s", self.name, "sh", "-c",
                             "trap 'echo TERM; exit 0' TERM; while :; do sleep 0.02; done")
        self.assertEqual((made.returncode, made.stdout), (79, "TERM\n"), made.stderr)
        self.assertIn("held for", made.stderr)
        self.assertLess(time.monotonic() - began, 0.7 + LATE)
        self.assertGreater(time.monotonic() - began, 0.4)
        self.assertEqual(self.latchkey("run", "--max-hold", "700ms", self.name, "true").returncode, 0)

    def test_semaphore(self):
        """Its permits are renewed too, and end with their lease."""
        words = ("--kind", "semaphore", "--permits", "2", "--lease", "2s")
        first = self.begin_run(*words, self.name, "sh", "-c", "echo began; sleep 3.5")
        second = self.begin_run(*words, self.name, "sh", "-c", "echo began; exec sleep 60")
        self.assertEqual(self.latchkey("run", "-n", *words, self.name, "true").returncode, 75)
        self.assertEqual(first.wait(support.PATIENCE), 0)
        self.assertEqual(self.latchkey("run", "-n", *words, self.name, "true").returncode, 0)
        self.server.cli("DEL", f"{{{self.name}}}:timeout")
        self.assertEqual(second.wait(support.PATIENCE), 79)


class Killed(Case):
    def begin_stubborn(self, *options):
        process = self.begin_run(*options, self.name, "sh", "-c", STUBBORN)
        self.assertTrue(wait_until(lambda: len(processes_of(self.name)) >= 4), processes_of(self.name))
        [keeper] = children_of(process.pid)
        return process, keeper

    def assert_ends_with_its_lease(self, limit):
        self.assertTrue(wait_until(lambda: self.is_free(self.name), limit))

    def test_R2_front_killed(self):
        process, keeper = self.begin_stubborn("--lease", "2s")
        process.kill()
        self.assert_dead(self.name, 1)
        self.assertTrue(wait_until(lambda: not alive(keeper), 1))
        self.assert_ends_with_its_lease(2 + LATE)

    def test_R2_front_stopped(self):
        process, _ = self.begin_stubborn("--lease", "1s", "--grace", "100ms")
        process.send_signal(signal.SIGSTOP)
        self.assert_dead(self.name, 1 + LATE)
        self.assert_ends_with_its_lease(1 + LATE)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(support.PATIENCE), 79)

    def test_R2_keeper_killed(self):
        process, keeper = self.begin_stubborn("--lease", "2s")
        os.kill(keeper, signal.SIGKILL)
        self.assert_dead(self.name, 1)
        self.assertEqual(process.wait(support.PATIENCE), 128 + signal.SIGKILL)
        self.assertIn("keeper was killed", process.stderr.read())
        self.assert_ends_with_its_lease(2 + LATE)

    def test_R2_keeper_stopped(self):
        process, keeper = self.begin_stubborn("--lease", "1s", "--grace", "100ms")
        os.kill(keeper, signal.SIGSTOP)
        self.assert_dead(self.name, 1 + LATE)
        self.assertEqual(process.wait(support.PATIENCE), 79)
        self.assert_ends_with_its_lease(LATE)
        self.assertFalse(alive(keeper))

    def test_R2_keeper_stopped_beside_the_next(self):
        """Nothing of the command lives when its key has gone: the next one may begin."""
        for lease in ("1s", "3s"):
            process, keeper = self.begin_stubborn("--lease", lease)
            self.addCleanup(process.kill)
            os.kill(keeper, signal.SIGSTOP)
            self.assert_ends_with_its_lease(3 + LATE)
            self.assertEqual([pid for pid in processes_of(self.name) if state_of(pid) != "Z"], [])
            self.assertEqual(process.wait(support.PATIENCE), 79)

    def test_R2_keeper_stopped_and_continued(self):
        process, keeper = self.begin_stubborn("--lease", "1s", "--grace", "300ms")
        os.kill(keeper, signal.SIGSTOP)
        self.assertIn("is stopped", process.stderr.readline())
        os.kill(keeper, signal.SIGCONT)
        self.assert_dead(self.name, 1 + LATE)
        self.assertEqual(process.wait(support.PATIENCE), 79)

    def test_R2_keeper_stopped_and_lost(self):
        """The keeper cannot hear of the loss, and the next holder may have begun."""
        process, keeper = self.begin_stubborn("--lease", "30s", "--grace", "100ms")
        self.server.cli("DEL", self.name)
        os.kill(keeper, signal.SIGSTOP)
        self.assert_dead(self.name, LATE)
        self.assertEqual(process.wait(support.PATIENCE), 79)

    def test_R2_keeper_stopped_before_the_grant(self):
        """It starts nothing, and the lock ends with its lease."""
        holder = self.hold(self.name)
        process = self.begin("run", "--lease", "1s", self.name, "true")
        self.assertIn("waiting for", process.stderr.readline())
        [keeper] = children_of(process.pid)
        os.kill(keeper, signal.SIGSTOP)
        self.assertTrue(wait_until(lambda: state_of(keeper) == "T"))
        holder.stdin.close()
        self.assertIn("is stopped", process.stderr.readline())
        self.assertEqual(process.wait(support.PATIENCE), 79)
        self.assertTrue(self.is_free(self.name))

    def test_after_an_ignored_loss(self):
        """There is nothing left to watch over."""
        process = self.begin_run("--lease", "500ms", "--on-loss", "ignore", self.name, "sh", "-c", "echo began; read -r x",
                                 stdin=subprocess.PIPE)
        self.addCleanup(process.stdin.close)
        self.server.cli("DEL", self.name)
        self.assertIn("the command goes on", process.stderr.readline())
        time.sleep(0.6)  # its lease

        def wakeups():
            text = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            return int(re.search(r"\nvoluntary_ctxt_switches:\s*(\d+)", text)[1])
        before = wakeups()
        time.sleep(1)
        self.assertLess(wakeups() - before, 100)  # 198 before, 60 with a thirtieth of this lease

    def test_R2_random_moments(self):
        """50 kills of the front, 50 of the keeper, some at a time: no process of the command lives a second later, and the next one holds as
        soon as the lease is over, never beside one of them."""
        seed = int.from_bytes(os.urandom(4), "big")
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            rounds = [pool.submit(self.kill_one, i, random.Random(seed + i)) for i in range(100)]
            for i, one in enumerate(rounds):
                with self.subTest(seed=seed, round=i):
                    one.result()

    def kill_one(self, i, chance):
        name = f"{self.name}:{i}"
        script = STUBBORN.replace("sleep 300 &", "sleep 300 & sleep 300 & (sleep 0.1; sleep 300) &")
        process = self.begin("run", "--lease", "500ms", "--grace", "0", name, "env", f"LIVES={name}", "sh", "-c", script)
        time.sleep(chance.uniform(0, 0.15))
        [victim] = [process.pid] if i % 2 else wait_until(lambda: children_of(process.pid))
        os.kill(victim, signal.SIGKILL)
        killed = time.monotonic()
        waiter = self.begin("run", name, "sh", "-c", f"grep -lsxz LIVES={name} /proc/[0-9]*/environ; true")
        dead = wait_until(lambda: not processes_with(f"LIVES={name}"), 1 + LATE, pause=0.05)
        left = processes_with(f"LIVES={name}")
        said, errors = waiter.communicate(timeout=support.PATIENCE)
        process.kill()
        process.wait()
        self.assertTrue(dead, f"{1 + LATE} s later there are {left}")
        self.assertEqual((waiter.returncode, said), (0, ""), errors)
        self.assertLess(time.monotonic() - killed, 1 + 5 * LATE)


if __name__ == "__main__":
    support.main()
