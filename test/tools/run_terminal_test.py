"""R5 of `latchkey run`: what a user at a terminal sees; and 100 of them, many at a time."""

import os
import pty
import re
import signal
import subprocess
import time

import support
from support import Case, alive, processes_of, wait_until


class Terminal:
    """An interactive shell on a terminal of its own."""

    def __init__(self, environment):
        self.pid, self.device = pty.fork()
        if self.pid == 0:
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"],
                       {**environment, "PS1": "", "PS2": "", "HISTFILE": "", "TERM": "dumb"})
        os.set_blocking(self.device, False)
        self.seen = ""
        self.type("stty -echo; bind 'set enable-bracketed-paste off' 2>/dev/null; echo rea''dy\n")
        if not self.wait_for("ready"):
            raise RuntimeError("no shell: " + self.seen)

    def type(self, text):
        os.write(self.device, text.encode())

    def look(self):
        try:
            while more := os.read(self.device, 4096):
                self.seen += more.decode(errors="replace").replace("\r", "")
        except OSError:
            pass
        return self.seen

    def wait_for(self, pattern):
        """Takes what was seen up to the end of it."""
        if not wait_until(lambda: re.search(pattern, self.look())):
            raise AssertionError(f"{pattern!r} did not come: {self.seen!r}")
        found = re.search(pattern, self.seen)
        before, self.seen = self.seen[:found.end()], self.seen[found.end():]
        return before

    def close(self):
        os.close(self.device)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class AtATerminal(Case):
    def setUp(self):
        super().setUp()
        self.terminal = Terminal(self.environment())
        self.addCleanup(self.terminal.close)

    def run_words(self, *options):
        return " ".join((support.tool, "run", *options, f"'{self.name}'"))

    def test_R5_interrupt_reaches_the_command_once(self):
        self.terminal.type(f"{self.run_words()} bash -c 'trap \"echo heard INT\" INT; echo began; sleep 0.7; sleep 0.7;"
                           f" exit 3'; echo \"rc=$?\"\n")
        self.terminal.wait_for("began")
        self.terminal.type("\x03")
        seen = self.terminal.wait_for(r"rc=\d+")
        self.assertEqual(seen.count("heard INT"), 1, seen)
        self.assertIn("rc=3", seen)

    def test_R5_interrupt_ends_a_loop(self):
        command = "sh -c 'echo began; exec sleep 30'"
        self.terminal.type(f"for i in 1 2 3; do {self.run_words()} {command}; echo rc=$?; done\n")
        self.terminal.wait_for("began")
        self.terminal.type("\x03")
        self.terminal.type("echo fin''ished $?\n")
        seen = self.terminal.wait_for(r"finished \d+")
        self.assertNotIn("began", seen)
        self.assertIn("finished 130", seen)
        self.assertTrue(self.is_free(self.name))

    def test_R5_interrupt_ends_a_script(self):
        script = self.folder / "script"
        script.write_text(f"for i in 1 2 3; do {self.run_words()} sh -c 'echo began; exec sleep 30'; done\necho on\n")
        for shell in ("bash", "sh"):
            self.terminal.type(f"{shell} {script}\n")
            self.terminal.wait_for("began")
            self.terminal.type("\x03")
            self.terminal.type("echo fin''ished\n")
            seen = self.terminal.wait_for("finished")
            self.assertNotIn("began", seen, shell)
            self.assertNotIn("on\n", seen, shell)

    def test_R5_reads_and_writes(self):
        """The command has the terminal, and the shell has it again."""
        self.terminal.type(f"{self.run_words()} sh -c 'echo began; read -r line; echo got $line'\n")
        self.terminal.wait_for("began")
        self.terminal.type("words\n")
        self.terminal.wait_for("got words")
        self.terminal.type("read -r line; echo shell got $line\nmore\n")
        self.terminal.wait_for("shell got more")

    def test_R5_in_a_pipeline(self):
        self.terminal.type(f"{self.run_words()} sh -c 'echo began; read -r line; echo got $line' | cat\n")
        self.terminal.wait_for("began")
        self.terminal.type("words\n")
        self.terminal.wait_for("got words")

    def counter(self):
        file = self.folder / "count"
        # Not sh: where that is dash, a stop between vfork and exec of its child is not seen as its own. With a trap: a
        # bash without one goes on after an interrupt that comes when its child has just ended by itself.
        return file, ("bash -c 'trap \"exit 130\" INT; i=0; while :; do i=$((i + 1));"
                      f" echo $i >{file}; [ $i != 2 ] || echo began; sleep 0.02; done'")

    def stop(self, lease, more=""):
        file, command = self.counter()
        self.terminal.type(f"{self.run_words('--lease', lease, '--grace', '100ms')} {command}{more}\n")
        self.terminal.wait_for("began")
        self.terminal.type("\x1a")
        self.terminal.wait_for(r"ends in \d+ m?s unless continued")
        self.terminal.wait_for("Stopped")
        return file

    def test_R5_stop_and_continue(self):
        file = self.stop("6s")
        before = file.read_text()
        time.sleep(0.3)
        self.assertEqual(file.read_text(), before)
        self.terminal.type("fg\n")
        self.assertTrue(wait_until(lambda: file.read_text() not in ("", before)))
        self.terminal.type("\x1a")
        self.terminal.wait_for("Stopped")
        before = file.read_text()
        self.terminal.type("bg\n")
        self.assertTrue(wait_until(lambda: file.read_text() not in ("", before)))
        self.terminal.type("fg\n")
        self.assertTrue(wait_until(lambda: os.tcgetpgrp(self.terminal.device) != self.terminal.pid))
        self.terminal.type("\x03")
        self.terminal.type("echo rc=$?\n")
        self.terminal.wait_for("rc=130")

    def test_R5_stopped_for_too_long(self):
        """The deadline counts on; the next one may come."""
        file = self.stop("1s")
        self.assert_dead(self.name, 2)
        self.assertEqual(self.latchkey("run", "-w5s", self.name, "true").returncode, 0)
        before = file.read_text()
        self.terminal.type("fg; echo rc=$?\n")
        self.terminal.wait_for("rc=79")
        self.assertEqual(file.read_text(), before)

    def test_R5_continued_after_a_loss(self):
        """Not one step more: the server is asked first."""
        file = self.stop("6s")
        self.server.cli("DEL", self.name)
        before = file.read_text()
        self.terminal.type("fg; echo rc=$?\n")
        self.terminal.wait_for("rc=79")
        self.assertEqual(file.read_text(), before)

    def test_R5_stopped_in_a_script(self):
        """The shell gets its terminal back, whoever stands between."""
        file, command = self.counter()
        script = self.folder / "script"
        script.write_text(f"{self.run_words()} {command}\n")
        self.terminal.type(f"bash {script}\n")
        self.terminal.wait_for("began")
        self.terminal.type("\x1a")
        self.terminal.wait_for("Stopped")
        before = file.read_text()
        self.terminal.type("fg\n")
        self.assertTrue(wait_until(lambda: file.read_text() not in ("", before)))
        self.terminal.type("\x03")
        self.terminal.type("echo fin''ished\n")
        self.terminal.wait_for("finished")
        self.assertTrue(wait_until(lambda: not processes_of(self.name)))

    def test_R5_the_front_killed(self):
        """The shell has its terminal."""
        self.terminal.type(f"{self.run_words('--lease', '1s')} sh -c 'echo pid=$PPID; exec sleep 60'\n")
        keeper = int(re.search(r"pid=(\d+)", self.terminal.wait_for(r"pid=\d+\n"))[1])
        front = support.parent_of(keeper)
        os.kill(front, signal.SIGKILL)
        self.terminal.wait_for("Killed")
        self.terminal.type("read -r line; echo shell got $line\nmore\n")
        self.terminal.wait_for("shell got more")
        self.assertTrue(wait_until(lambda: not alive(keeper)))


class Crowd(Case):
    def test_100(self):
        """What is read and written back by 100 that overlap, 25 at a time, is off by none."""
        count = self.folder / "count"
        count.write_text("0\n")
        add = f"read -r n <{count}; sleep 0.0$((n % 3)); echo $((n + 1)) >{count}"
        for _ in range(4):
            began = [self.begin("run", "--lease", "20s", self.name, "sh", "-c", add, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL) for _ in range(25)]
            self.assertEqual({process.wait(60) for process in began}, {0})
        self.assertEqual(count.read_text(), "100\n")


if __name__ == "__main__":
    support.main()
