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


if __name__ == "__main__":
    support.main()
