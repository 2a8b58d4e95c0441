"""Callers that close descriptors, use names that are no text, point --result at a device, or stop us by hand; and peers
that are no Redis server."""

import contextlib
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import threading
import time

import support
from support import Case, processes_of, state_of, wait_until

NOT_UTF8 = b"\xff\xc0\x80\xed\xa0\x80 name"


def pending(pid):
    """Was it sent what it has not read yet?"""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return any(int(line.split()[1], 16) for line in text.splitlines() if line.startswith("ShdPnd"))


class OddCallers(Case):
    def shell(self, script, *words, limit=support.PATIENCE):
        """The tool is $0 of the script."""
        return subprocess.run(["bash", "-c", script, support.tool, *words], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, env=self.environment(), timeout=limit)

    def test_a_message_goes_to_no_socket(self):
        """Standard error is closed: its number must not become that of a connection, which the message would break."""
        self.hold(self.name)
        made = self.shell('exec "$0" wait -w 1500ms "$1" 2>&-', self.name)
        self.assertEqual((made.returncode, made.stdout), (75, ""))

    def test_R6_closed_descriptors_stay_closed(self):
        made = self.shell('exec "$0" run "$1" sh -c "[ -e /proc/\\$\\$/fd/0 ]; echo \\$?" <&-', self.name)
        self.assertEqual((made.returncode, made.stdout), (0, "1\n"))

    def test_C1_a_result_that_cannot_be_written(self):
        self.hold(self.name)
        for words in (("status", self.name), ("list",), ("--json", "list"), ("--json", "status", self.name)):
            for where in (">/dev/full", ">&-"):
                made = self.shell(f'exec "$0" "$@" {where}', *words)
                self.assertEqual((made.returncode, made.stderr), (70, "latchkey: the result cannot be written\n"),
                                 (words, where))

    def test_C1_names_that_are_no_text(self):
        """JSON is UTF-8, whatever the name is; the line for people has its bytes."""
        name = os.fsencode(self.name) + NOT_UTF8
        shown = self.name + "\ufffd" * 6 + " name"
        tool = os.fsencode(support.tool)

        def said(*words):
            made = subprocess.run([tool, *words], capture_output=True, env=self.environment(), timeout=20, check=False)
            self.assertEqual((made.returncode, made.stderr), (0, b""), words)
            return made.stdout

        token = json.loads(said(b"--json", b"acquire", b"--lease", b"1m", name))
        self.assertEqual(token["name"], shown)
        token = token["token"].encode()
        self.assertIn(name, said(b"status", name))
        for words in ((b"status", name), (b"list", name), (b"held", token), (b"extend", token), (b"release", token)):
            self.assertEqual(json.loads(said(b"--json", *words).decode())["name"], shown, words)
        text = "äöü €\U0001f512"
        self.assertEqual(json.loads(self.latchkey("--json", "acquire", "--lease", "1m", text).stdout)["name"], text)

    def test_R8_what_is_no_file_is_not_replaced(self):
        fifo, folder = self.folder / "fifo", self.folder / "folder"
        os.mkfifo(fifo)
        folder.mkdir()
        mark = self.folder / "ran"
        for where in (fifo, folder, "/dev/fd/1"):
            made = self.latchkey("run", "--result", where, self.name, "touch", mark)
            self.assertEqual((made.returncode, made.stderr.count("\n")), (78, 1), made.stderr)
            self.assertIn("is no regular file", made.stderr)
            self.assertFalse(mark.exists())
        self.assertTrue(fifo.is_fifo())
        link, target = self.folder / "link", self.folder / "target"
        target.write_text("old")
        link.symlink_to("target")
        self.assertEqual(self.latchkey("run", "--result", link, self.name, "true").returncode, 0)
        self.assertTrue(link.is_symlink())
        self.assertEqual(json.loads(target.read_text())["outcome"], "ran")

    def test_R7_no_fence_of_a_surrounding_run(self):
        """A number of another lock would be taken for one of this."""
        inner = [support.tool, "run", "inner:" + self.name, "sh", "-c", "echo \"fence ${LATCHKEY_FENCE-none}\""]
        made = self.latchkey("run", "--kind", "fenced", self.name, *inner)
        self.assertEqual((made.returncode, made.stdout), (0, "fence none\n"))

    def test_R1_extend_never_shortens(self):
        """What a surrounding run was told by the server stays true: nobody else comes in while its command works."""
        for kind in ("lock", "semaphore"):
            name = f"{self.name}:{kind}"
            options = ("--kind", kind) + (("--permits", "1") if kind == "semaphore" else ())
            process = self.begin("run", *options, name, "--shell",
                                 f"'{support.tool}' extend --lease 50ms; echo $?; read -r line", stdin=subprocess.PIPE)
            self.addCleanup(process.stdin.close)
            self.assertIn(" is held and ends in 29 s", process.stdout.readline())
            self.assertEqual(process.stdout.readline(), "0\n")
            busy = self.latchkey("run", "-w", "200ms", "--kind", kind, name, "true")
            self.assertEqual(busy.returncode, 75, busy.stderr)
            process.stdin.close()
            process.wait(support.PATIENCE)

    def test_R1_max_hold_of_a_permit_that_is_continued(self):
        began = time.monotonic()
        process = self.begin_run("--kind", "semaphore", "--permits", "1", "--max-hold", "1500ms", self.name, "sh", "-c",
                                 "echo began; exec sleep 60")
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(support.PATIENCE), 79)
        self.assertLess(time.monotonic() - began, 8)

    def begin_below_shell(self, *words):
        """In a session without a terminal, in which a shell stands above the group of the tool and its caller. That one
        tells the pid of the tool, then what it reads, and in the end how the tool ended."""
        caller = '"$@" </dev/null & echo $!; while read -r line; do echo "$line"; done; wait $!; echo $?'
        above = f"set -m; bash -c '{caller}' bash \"$@\" <&0 & wait"
        group = subprocess.Popen(["bash", "-c", above, "bash", support.tool, "run", self.name, *words], text=True,
                                 bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 env=self.environment(), start_new_session=True)
        for stream in (group.stdout, group.stdin):
            self.addCleanup(stream.close)
        front = int(group.stdout.readline())
        self.addCleanup(lambda: os.killpg(os.getpgid(front), signal.SIGKILL) if support.alive(front) else None)
        self.addCleanup(support.kill_group_of, group)
        self.assertTrue(wait_until(lambda: len(processes_of(self.name)) == 1))
        return group, front

    def test_R5_without_a_terminal_nobody_else_is_stopped(self):
        """TSTP by hand stops the tool and its command, not those who happen to share the tool's group."""
        group, front = self.begin_below_shell("sleep", "60")
        os.kill(front, signal.SIGTSTP)
        self.assertTrue(wait_until(lambda: state_of(front) == "T"))
        group.stdin.write("goes on\n")
        self.assertTrue(select.select([group.stdout], [], [], 5)[0])
        self.assertEqual(group.stdout.readline(), "goes on\n")
        os.kill(front, signal.SIGTERM)
        os.kill(front, signal.SIGCONT)
        group.stdin.close()
        self.assertEqual(group.stdout.readline(), "143\n")

    def test_R5_continued_before_it_has_stopped(self):
        """CONT may overtake the stop of the command; nobody would send it once more."""
        group, front = self.begin_below_shell("sleep", "60")
        keeper, = support.children_of(front)
        command, = processes_of(self.name)
        os.kill(keeper, signal.SIGSTOP)  # so that the stop is late
        self.server.pause()  # which is asked before the command is continued
        try:
            for number in (signal.SIGTSTP, signal.SIGCONT):
                os.kill(front, number)
                self.assertTrue(wait_until(lambda: not pending(front)))
            os.kill(keeper, signal.SIGCONT)
            self.assertTrue(wait_until(lambda: state_of(command) == "T"))
        finally:
            self.server.resume()
        self.assertTrue(wait_until(lambda: state_of(command) == "S"))
        os.kill(front, signal.SIGTERM)
        group.stdin.close()
        self.assertEqual(group.stdout.readline(), "143\n")


class OddServers(Case):
    """`status` and the others read answers themselves."""

    def serve(self, answer):
        """A peer that says `answer` to whatever it is sent; None: it closes the connection."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def talk(connection):
            with connection, contextlib.suppress(OSError):
                while connection.recv(4096) and answer is not None:
                    connection.sendall(answer)

        def accept():
            while True:
                try:
                    threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        return {"LATCHKEY_URI": f"redis://127.0.0.1:{listener.getsockname()[1]}"}

    def test_a_closed_connection_ends_no_program(self):
        """By SIGPIPE: which of the requests meets the closed connection is chance."""
        env = self.serve(None)
        for words in (("status", self.name), ("list",), ("wait", self.name), ("watch", self.name)):
            for _ in range(5):
                made = self.latchkey(*words, env=env)
                self.assertEqual((made.returncode, made.stdout), (69, ""), words)
                self.assertIn("cannot use the server", made.stderr)

    def test_answers_that_make_no_sense(self):
        for answer in (b"*0\r\n", b"$-1\r\n", b"+OK\r\n" * 3):
            env = self.serve(answer)
            for words in (("list",), ("wait", "-w", "0", self.name)):
                made = self.latchkey(*words, env=env)
                self.assertEqual((made.returncode, made.stdout), (76, ""), (answer, words, made.stderr))
                self.assertIn("is no Redis server", made.stderr)

    def test_a_silent_server_is_waited_for_once(self):
        token = self.latchkey("acquire", "--lease", "1m", self.name).stdout.strip()
        self.server.pause()
        try:
            began = time.monotonic()
            processes = [self.begin(word, token) for word in ("held", "extend", "release")]
            self.assertEqual([one.wait(support.PATIENCE) for one in processes], [69] * 3)
            self.assertLess(time.monotonic() - began, 12)  # 5 s, and not as often as the library tries
        finally:
            self.server.resume()


if __name__ == "__main__":
    support.main()
