"""C6: what the exit code says; and of R8, what stands in the file of --result."""

import json
import os
import signal
import time

import support
from support import Case, Server


class ExitCodes(Case):
    def run_code(self, *words, **more):
        made = self.latchkey("run", "--result", self.folder / "result", *words, **more)
        self.result = json.loads((self.folder / "result").read_text())
        self.message = made.stderr
        return made.returncode

    def assert_result(self, **expected):
        self.assertEqual({name: self.result[name] for name in expected}, expected)

    def test_C6_of_the_command(self):
        for code in (0, 1, 42, 255):
            self.assertEqual(self.run_code(self.name, "sh", "-c", f"exit {code}"), code)
            self.assert_result(outcome="ran", exit=code, signal=None, reason="", schema=1, fence=None)
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGUSR1):
            # In a session of its own there is no terminal, after whose keys the tool would die as its command did.
            self.assertEqual(self.run_code(self.name, "sh", "-c", f"kill -{int(number)} $$", start_new_session=True),
                             128 + number)
            self.assert_result(outcome="ran", exit=None, signal=number)

    def test_C6_wrong_usage(self):
        for words in (("run",), ("run", self.name), ("run", "--nothing", self.name, "true"), ("nothing",), (),
                      ("run", "--kind", "lok", self.name, "true"), ("run", "--permits", "2", self.name, "true"),
                      ("run", "", "true"), ("run", self.name, "--shell", "true", "true"),
                      ("run", "--lease", "4s", "--grace", "3s", self.name, "true"),
                      ("run", "--lease", "forever", self.name, "true"), ("run", "--lease", "0", self.name, "true"),
                      ("run", "-w", "1s", "-w", "2s", self.name, "true"), ("run", "-n=5", self.name, "true"),
                      ("run", "-E", "256", self.name, "true"), ("run", "-w"), ("--json=1", "run", self.name, "true"),
                      ("run", "--also", self.name, self.name, "true"), ("run", "-n", "-w1", self.name, "true")):
            made = self.latchkey(*words)
            self.assertEqual((made.returncode, made.stdout), (64, ""), words)
            self.assertTrue(made.stderr.startswith("latchkey: "), made.stderr)

    def test_C6_values_that_are_names_of_options(self):
        for words in (("--orphans", "wait"), ("--also", "lease"), ("--note", "quiet"), ("--also", "permits")):
            self.assertEqual(self.run_code(*words, self.name, "true"), 0, words)
        self.assertEqual(self.run_code("--also", "wait", "--orphans", "wait", "lease", "sh", "-c", "exit 3"), 3)
        self.assertEqual(self.latchkey("status", "lease").returncode, 1)

    def test_C6_nested(self):
        tool = support.tool
        self.assertEqual(self.run_code(self.name, tool, "run", self.name, "true"), 64)
        self.assertEqual(self.run_code("--also", "other:" + self.name, self.name, tool, "run", "other:" + self.name,
                                       "true"), 64)
        self.assertEqual(self.run_code(self.name, tool, "run", "third:" + self.name, "true"), 0)
        # Not only the innermost of those that surround it.
        self.assertEqual(self.run_code(self.name, tool, "run", "third:" + self.name, tool, "run", self.name, "true"), 64)
        self.assertEqual(self.run_code(self.name, tool, "run", "third:" + self.name, tool, "run", "4th:" + self.name, "true"),
                         0)

    def test_C6_no_such_program(self):
        plain = self.folder / "plain"
        plain.write_text("#!/bin/sh\n")
        self.server.pause()  # asked for before the lock is
        try:
            self.assertEqual(self.run_code(self.name, "no-such-program"), 127)
            self.assert_result(outcome="error", exit=None, held_ms=0)
            self.assertEqual(self.run_code(self.name, self.folder / "no-such-program"), 127)
            self.assertEqual(self.run_code(self.name, plain), 126)
            self.assertEqual(self.run_code(self.name, self.folder), 126)
            self.assertEqual(self.run_code(self.name, "plain", env={"PATH": str(self.folder)}), 126)
        finally:
            self.server.resume()
        plain.chmod(0o755)
        self.assertEqual(self.run_code(self.name, "plain", env={"PATH": f"/nowhere:{self.folder}:/bin"}), 0)
        plain.write_text("#!/no/such/interpreter\n")
        self.assertEqual(self.run_code(self.name, plain), 127)
        self.assert_result(outcome="error", exit=None)
        plain.write_text("exit 9\n")  # as execvp, and so the shell, does it
        self.assertEqual(self.run_code(self.name, plain), 9)

    def test_C6_busy(self):
        self.hold(self.name)
        self.assertEqual(self.run_code("-n", self.name, "true"), 75)
        self.assert_result(outcome="busy", exit=None, held_ms=0)
        self.assertEqual(self.run_code("-w0", self.name, "true"), 75)
        began = time.monotonic()
        self.assertEqual(self.run_code("--wait=1.2s", self.name, "true"), 75)
        self.assertGreater(time.monotonic() - began, 1.19)
        self.assertGreater(self.result["waited_ms"], 1_199)
        self.assertIn("waiting for", self.message)
        for code in (0, 1, 255):
            self.assertEqual(self.run_code("-n", "-E", code, self.name, "true"), code)

    def test_C6_server_away(self):
        for uri in ("redis://127.0.0.1:1", f"unix://{self.folder}/nothing"):
            began = time.monotonic()
            self.assertEqual(self.run_code("-n", self.name, "true", env={"LATCHKEY_URI": uri}), 69)
            self.assertLess(time.monotonic() - began, 8)
            self.assert_result(outcome="error", exit=None)

    def test_C6_server_silent(self):
        server = Server()
        self.addCleanup(server.stop)
        server.pause()
        began = time.monotonic()
        self.assertEqual(self.run_code(self.name, "true", env={"LATCHKEY_URI": server.uri}), 69)
        self.assertLess(time.monotonic() - began, 12)
        server.resume()

    def test_C6_server_refuses(self):
        self.server.cli("SET", self.name, "no lock")
        self.assertEqual(self.run_code(self.name, "true"), 76)
        replica = Server("--replicaof", "127.0.0.1", "1")
        self.addCleanup(replica.stop)
        self.assertEqual(self.run_code(self.name, "true", env={"LATCHKEY_URI": replica.uri}), 76, self.message)

    def test_C6_server_without_memory(self):
        """It is said why, in the server's words, and not that somebody else has it."""
        server = Server("--maxmemory", "1mb")
        self.addCleanup(server.stop)
        for options in (("-n",), ("-w", "1500ms")):
            self.assertEqual(self.run_code(*options, self.name, "true", env={"LATCHKEY_URI": server.uri}), 69)
            self.assertIn("OOM command not allowed", self.result["reason"])
            self.assertNotIn("somebody", self.message)
            for line in self.message.splitlines():
                self.assertIn("OOM command not allowed", line)

    def test_C6_permissions(self):
        server = Server()
        self.addCleanup(server.stop)
        server.cli("ACL", "SETUSER", "reader", "on", ">word", "~*", "&*", "+@all", "-eval", "-evalsha")
        server.cli("ACL", "SETUSER", "writer", "on", ">word", "~mine:*", "&*", "+@all")
        env = {"LATCHKEY_URI": server.uri, "LATCHKEY_PASSWORD": "word"}
        self.assertEqual(self.run_code(self.name, "true", env={**env, "LATCHKEY_USERNAME": "nobody"}), 77)
        self.assertEqual(self.run_code(self.name, "true", env={**env, "LATCHKEY_USERNAME": "reader"}), 77)
        self.assertEqual(self.run_code(self.name, "true", env={**env, "LATCHKEY_USERNAME": "writer"}), 77)
        self.assertIn("NOPERM", self.message)
        self.assertEqual(self.run_code("mine:" + self.name, "true", env={**env, "LATCHKEY_USERNAME": "writer"}), 0)

    def test_C6_bad_setting(self):
        (self.folder / "empty").write_text("\nsecond line\n", encoding="utf-8")
        for env in ({"LATCHKEY_URI": "nonsense"}, {"LATCHKEY_URI": "redis://host:port"},
                    {"LATCHKEY_PASSWORD_FILE": f"{self.folder}/nothing"},
                    {"LATCHKEY_PASSWORD_FILE": f"{self.folder}/empty"},
                    {"LATCHKEY_URI": "", "LATCHKEY_URI_FILE": f"{self.folder}/nothing"}):
            self.assertEqual(self.run_code(self.name, "true", env=env), 78, env)
        made = self.latchkey("run", "--result", "/no/such/folder/result", self.name, "true")
        self.assertEqual(made.returncode, 78)

    def test_C6_lost(self):
        process = self.begin_run("--lease", "600ms", "--lost-exit-code", "7", self.name, "sh", "-c",
                                 "echo began; exec sleep 60")
        self.server.cli("DEL", self.name)
        self.assertEqual(process.wait(support.PATIENCE), 7)

    def test_R8_times_and_fence(self):
        for _ in range(2):
            self.assertEqual(self.run_code("--kind", "fenced", self.name, "sleep", "0.3"), 0)
        self.assert_result(outcome="ran", fence=2)
        self.assertTrue(300 <= self.result["held_ms"] < 5_000, self.result)
        self.assertTrue(0 <= self.result["waited_ms"] < 5_000, self.result)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["result"])
        self.assertEqual(os.stat(self.folder / "result").st_mode & 0o111, 0)

    def test_R8_is_replaced_at_once(self):
        """A reader sees the old line or the new one."""
        self.run_code(self.name, "true")
        seen = self.latchkey("run", "--result", self.folder / "result", self.name, "cat", self.folder / "result")
        self.assertEqual(json.loads(seen.stdout)["outcome"], "ran")


if __name__ == "__main__":
    support.main()
