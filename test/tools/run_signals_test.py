"""R3, R4, R6 and R7 of `latchkey run`: signals, what a command leaves behind, what it inherits."""

import os
import re
import resource
import signal
import subprocess
import time

import support
from support import Case, processes_of, wait_until

FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


class Signals(Case):
    def test_R3_reach_the_group(self):
        """The command and its background job are told, once each, and the tool waits for them."""
        part = "trap 'echo {0} {1}; [ {1} = USR1 -o {1} = USR2 ] || exit 5' {1};"
        names = [number.name[3:] for number in FORWARDED]
        script = "(" + "".join(part.format("job", name) for name in names) + "while :; do sleep 0.02; done) & " + \
                 "".join(part.format("command", name) for name in names) + \
                 "sleep 0.2; echo began; while :; do sleep 0.02; done"
        for number in FORWARDED:
            name = f"{self.name}:{number.name}"
            process = self.begin_run(name, "bash", "-c", script)
            process.send_signal(number)
            heard = [process.stdout.readline().strip() for _ in range(2)]
            self.assertEqual(sorted(heard), [f"{who} {number.name[3:]}" for who in ("command", "job")])
            if number in (signal.SIGUSR1, signal.SIGUSR2):
                self.assertIsNone(process.poll())
                self.assertFalse(self.is_free(name))
                process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(support.PATIENCE), 5, number)
            self.assertTrue(self.is_free(name))
            self.assertEqual(processes_of(name), [])

    def test_R3_the_tool_waits(self):
        process = self.begin_run(self.name, "sh", "-c", "trap 'sleep 1.5; echo cleaned; exit 3' TERM; echo began;"
                                 "while :; do sleep 0.02; done")
        process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        self.assertFalse(self.is_free(self.name))
        self.assertEqual(process.wait(support.PATIENCE), 3)
        self.assertEqual(process.stdout.read(), "cleaned\n")
        self.assertTrue(self.is_free(self.name))

    def test_R3_orphans_end_after_a_signal(self):
        """TERM, and after grace KILL; only then is the lock released."""
        process = self.begin_run("--grace", "500ms", self.name, "sh", "-c",
                                 "(setsid sh -c 'trap \"echo TERM\" TERM; echo began; while :; do sleep 0.02; done' &);"
                                 "exec sleep 60")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.stdout.readline(), "TERM\n")
        told = time.monotonic()
        self.assertFalse(self.is_free(self.name))
        self.assertEqual(process.wait(support.PATIENCE), 143)
        self.assertGreater(time.monotonic() - told, 0.4)
        self.assertEqual(processes_of(self.name), [])

    def test_R3_before_the_grant(self):
        for kind in ("lock", "fair"):
            name = f"{self.name}:{kind}"
            holder = self.hold(name, "--kind", kind)
            for number in FORWARDED:
                process = self.begin("run", "--kind", kind, name, "touch", self.folder / "ran")
                self.assertTrue(wait_until(lambda: "waiting for" in process.stderr.readline()))
                process.send_signal(number)
                sent = time.monotonic()
                self.assertEqual(process.wait(support.PATIENCE), -number)
                self.assertLess(time.monotonic() - sent, 1)
            self.assertEqual(self.server.cli("LLEN", f"redisson_lock_queue:{{{name}}}"), "0")
            holder.stdin.close()
            self.assertEqual(holder.wait(support.PATIENCE), 0)
            self.assertEqual(self.latchkey("run", "-w5s", "--kind", kind, name, "true").returncode, 0)
        self.assertFalse((self.folder / "ran").exists())

    def test_R3_before_the_grant_without_a_server(self):
        self.server.pause()
        try:
            process = self.begin("run", self.name, "touch", self.folder / "ran")
            self.assertIn("waiting for the server", process.stderr.readline())
            sent = time.monotonic()
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(support.PATIENCE), -signal.SIGTERM)
            self.assertLess(time.monotonic() - sent, 1.2)
        finally:
            self.server.resume()
        self.assertFalse((self.folder / "ran").exists())

    def test_R3_what_was_ignored_stays_so(self):
        """As under nohup."""
        process = self.begin_run(self.name, "sh", "-c", "echo began; sleep 0.6; echo done",
                                 preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        self.assertEqual(process.wait(support.PATIENCE), 0)
        self.assertEqual(process.stdout.read(), "done\n")


class Orphans(Case):
    def run_with_orphan(self, *options, orphan="sleep 1.6"):
        began = time.monotonic()
        process = self.begin("run", *options, self.name, "sh", "-c",
                             f"(setsid {orphan} >/dev/null 2>&1 &); sleep 0.3; exit 4")
        self.assertEqual(process.wait(support.PATIENCE), 4)
        return time.monotonic() - began, process.stderr.read()

    def test_R4_wait(self):
        process = self.begin("run", self.name, "sh", "-c", "(setsid sleep 1.6 &) ; exit 4")
        said = process.stderr.readline()
        self.assertRegex(said, r"process \d+ \(sleep\)")
        self.assertFalse(self.is_free(self.name))
        self.assertEqual([int(re.search(r"process (\d+)", said)[1])], processes_of(self.name))
        self.assertEqual(process.wait(support.PATIENCE), 4)
        self.assertTrue(self.is_free(self.name))
        self.assertEqual(processes_of(self.name), [])

    def test_R4_kill(self):
        took, said = self.run_with_orphan("--orphans", "kill", orphan="sleep 60")
        self.assertLess(took, 3)
        self.assertEqual((said, processes_of(self.name)), ("", []))
        took, said = self.run_with_orphan("--orphans", "kill", "--grace", "500ms",
                                          orphan="sh -c 'trap \"\" TERM; while :; do sleep 0.1; done'")
        self.assertTrue(0.8 <= took < 4, took)
        self.assertEqual(processes_of(self.name), [])
        self.assertTrue(self.is_free(self.name))

    def test_R4_ignore(self):
        took, said = self.run_with_orphan("--orphans", "ignore", orphan="sleep 5")
        self.assertLess(took, 3)
        self.assertTrue(self.is_free(self.name))
        [left] = processes_of(self.name)
        os.kill(left, signal.SIGKILL)


class Inheritance(Case):
    def test_R6_descriptors(self):
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        self.addCleanup(os.close, write)
        made = self.latchkey("run", self.name, "sh", "-c", "ls /proc/self/fd; echo through >&7",
                             preexec_fn=lambda: os.dup2(write, 7), pass_fds=(7,))
        # The fourth is the folder that ls reads.
        self.assertEqual(made.stdout.split(), ["0", "1", "2", "3", "7"])
        self.assertEqual(os.read(read, 100), b"through\n")
        self.assertEqual(self.latchkey("run", self.name, "cat", stdin=None, input="text").stdout, "text")

    def test_R6_signals(self):
        """Mask, dispositions and limits are those of the caller."""
        def change():
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGWINCH})
            for number in (signal.SIGHUP, signal.SIGCHLD, signal.SIGALRM):
                signal.signal(number, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 4096))
        look = ("grep", "-E", "^(SigBlk|SigIgn|SigCgt)", "/proc/self/status")
        for prepare in (None, change):
            direct = subprocess.run(look, capture_output=True, text=True, check=True, preexec_fn=prepare)
            made = self.latchkey("run", self.name, *look, preexec_fn=prepare)
            self.assertEqual(made.stdout, direct.stdout)
        made = self.latchkey("run", self.name, "sh", "-c", "ulimit -Hc; ulimit -Sc; pwd; umask", preexec_fn=change,
                             cwd="/")
        self.assertEqual(made.stdout.split()[1:3], ["0", "/"])

    def test_R6_a_closed_reader_ends_the_command_alone(self):
        """The tool ignores PIPE for itself."""
        made = subprocess.run(["sh", "-c", f"{support.tool} run {self.name} yes | head -n 1; true"], text=True,
                              capture_output=True, env=self.environment(), timeout=support.PATIENCE, check=False)
        self.assertEqual(made.stdout, "y\n")
        self.assertTrue(self.is_free(self.name))

    def test_R7_environment(self):
        made = self.latchkey("run", "--kind", "fenced", "--lease", "20s", self.name, "env", env={"KEPT": "a b"})
        seen = dict(line.split("=", 1) for line in made.stdout.splitlines())
        self.assertEqual((seen["LATCHKEY_LOCK"], seen["LATCHKEY_KIND"], seen["LATCHKEY_LEASE_MS"], seen["KEPT"]),
                         (self.name, "fenced", "20000", "a b"))
        self.assertEqual(seen["LATCHKEY_FENCE"], "1")
        self.assertRegex(seen["LATCHKEY_OWNER"], r"^[0-9a-f]{8}-[0-9a-f-]{27}:\d+$")
        self.assertRegex(seen["LATCHKEY_TOKEN"], r"^lk1\.[A-Za-z0-9_-]+$")
        self.assertNotIn("LATCHKEY_FENCE", self.latchkey("run", self.name, "env").stdout)
        made = self.latchkey("run", self.name, "sh", "-c", f"redis-cli -s {self.server.socket} HKEYS '{self.name}'; "
                             "echo $LATCHKEY_OWNER")
        self.assertEqual(len(set(made.stdout.split())), 1)

    def test_every_kind(self):
        for kind in ("lock", "fair", "fenced", "spin", "plain", "non-reentrant", "read", "write"):
            name = f"{self.name}:{kind}"
            inner = ("sh", "-c", f"unset LATCHKEY_TOKEN; {support.tool} run -n --kind {kind} {name} true; echo $?")
            made = self.latchkey("run", "--kind", kind, name, *inner)
            self.assertEqual(made.stdout, "0\n" if kind == "read" else "75\n", kind)

    def test_also_all_or_none(self):
        self.hold("second:" + self.name)
        words = ("run", "-n", "--also", "second:" + self.name, self.name, "true")
        for words in (words, ("run", "-w", "1200ms", *words[2:])):
            made = self.latchkey(*words)
            self.assertEqual(made.returncode, 75)
            self.assertTrue(self.is_free(self.name))
            for line in made.stderr.splitlines():
                self.assertIn("second:" + self.name, line, "the busy one is named")
        made = self.latchkey("run", "--also", "third:" + self.name, self.name, "sh", "-c",
                             f"redis-cli -s {self.server.socket} EXISTS '{self.name}' 'third:{self.name}'")
        self.assertEqual(made.stdout, "2\n")


if __name__ == "__main__":
    support.main()
