"""Callers that close descriptors, use names that are no text, point --result at a device, or stop us by hand."""

import json
import os
import select
import signal
import subprocess
import time

import support
from support import Case, processes_of, state_of, wait_until

NOT_UTF8 = b"\xff\xc0\x80\xed\xa0\x80 name"


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

    def test_R5_without_a_terminal_nobody_else_is_stopped(self):
        """TSTP by hand stops the tool and its command, not those who happen to share the tool's group."""
        # A session without a terminal, in which a shell stands above the group of the tool and its caller.
        caller = '"$0" run "$1" sleep 60 </dev/null & echo $!; while read -r line; do echo "$line"; done; wait'
        above = f"set -m; bash -c '{caller}' \"$0\" \"$1\" <&0 & wait"
        group = subprocess.Popen(["bash", "-c", above, support.tool, self.name], text=True, bufsize=1,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 env=self.environment(), start_new_session=True)
        for stream in (group.stdout, group.stdin):
            self.addCleanup(stream.close)
        front = int(group.stdout.readline())
        self.addCleanup(lambda: os.killpg(os.getpgid(front), signal.SIGKILL) if support.alive(front) else None)
        self.addCleanup(support.kill_group_of, group)
        self.assertTrue(wait_until(lambda: len(processes_of(self.name)) == 1))
        os.kill(front, signal.SIGTSTP)
        self.assertTrue(wait_until(lambda: state_of(front) == "T"))
        group.stdin.write("goes on\n")
        self.assertTrue(select.select([group.stdout], [], [], 5)[0])
        self.assertEqual(group.stdout.readline(), "goes on\n")
        os.kill(front, signal.SIGTERM)
        os.kill(front, signal.SIGCONT)
        group.stdin.close()
        self.assertEqual(group.wait(support.PATIENCE), 0)


if __name__ == "__main__":
    support.main()
