"""`acquire`, `extend`, `held`, `release` for scripts, and `force-unlock`."""

import base64
import json
import os
import pathlib
import pty
import re
import shlex
import subprocess
import time

import support
from support import Case, Server, wait_until

KINDS = ("lock", "fair", "fenced", "spin", "plain", "non-reentrant", "read", "write")


def inside(token):
    """What a token says."""
    text = token.removeprefix("lk1.")
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


class Hand(Case):
    def take(self, name, *options):
        made = self.latchkey("acquire", "--lease", "1m", *options, name)
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        self.assertRegex(made.stdout, r"^lk1\.[A-Za-z0-9_-]+\n$")
        return made.stdout.strip()

    def code(self, *words, **more):
        return self.latchkey(*words, **more).returncode

    def left(self, name):
        return int(self.server.cli("PTTL", name))

    def owner(self, name):
        return self.server.cli("HKEYS", name)

    def test_token_of_every_kind(self):
        for kind in KINDS:
            with self.subTest(kind):
                name = f"{self.name}:{kind}"
                token = self.take(name, "--kind", kind)
                said = inside(token)
                self.assertEqual((said["name"], said["kind"], said["lease_ms"]), (name, kind, 60_000))
                self.assertEqual("fence" in said, kind == "fenced")
                self.assertTrue(said["owner"].startswith("6c6b6579-"), said)
                self.assertTrue(50_000 < self.left(name) <= 60_000)
                self.assertEqual(self.code("held", token), 0)
                self.assertEqual(self.code("extend", token, "--lease", "2m"), 0)
                self.assertGreater(self.left(name), 110_000)
                self.assertEqual(self.code("held", token), 0)
                self.assertEqual(self.code("release", token), 0)
                self.assertTrue(self.is_free(name))
                for words in (("held", token), ("extend", token), ("release", token)):
                    self.assertEqual(self.code(*words), 1, words)
                self.assertTrue(self.is_free(name))

    def test_permits(self):
        holder = self.hold(self.name, "--kind", "semaphore", "--permits", "2")
        made = self.latchkey("run", "-w", "1.2s", "--kind", "semaphore", "none:" + self.name, "true")
        self.assertEqual(made.returncode, 75)
        self.assertIn("none is free; if nobody has made any, --permits N does", made.stderr)
        token = self.take(self.name, "--kind", "semaphore")
        self.assertEqual(self.code("acquire", "-n", "--lease", "1m", "--kind", "semaphore", self.name), 75)
        made = self.latchkey("--json", "held", token)
        self.assertEqual(made.returncode, 0)
        self.assertTrue(0 < json.loads(made.stdout)["remaining_ms"] <= 60_000, made.stdout)
        self.assertEqual(self.code("extend", token, "--lease", "2m"), 0)
        self.assertEqual(self.code("release", token), 0)
        for words in (("held", token), ("extend", token), ("release", token)):
            self.assertEqual(self.code(*words), 1, words)
        self.assertIsNone(holder.poll())

    def test_a_token_of_somebody_else_changes_nothing(self):
        token = self.take(self.name)
        self.server.cli("DEL", self.name)
        self.hold(self.name)
        before = self.owner(self.name)
        for words in (("held", token), ("extend", token), ("release", token)):
            made = self.latchkey(*words)
            self.assertEqual((made.returncode, made.stderr), (1, f"latchkey: {self.name} is not held any more\n"
                             if words[0] != "release" else f"latchkey: {self.name} was not held any more\n"))
        self.assertEqual(self.owner(self.name), before)

    def test_where_the_token_comes_from(self):
        token = self.take(self.name)
        self.assertEqual(self.code("held", env={"LATCHKEY_TOKEN": token}), 0)
        self.assertEqual(self.code("held", "-", input=token + "\n", stdin=None), 0)
        self.assertEqual(self.code("held", token, env={"LATCHKEY_TOKEN": "lk1.x"}), 0)
        for words, env in ((("held",), {}), (("held", "lk1.x"), {}), (("release", "no"), {}), (("extend", "-"), {}),
                           (("release",), {"LATCHKEY_TOKEN": token[:-3]}), (("held", token, token), {})):
            self.assertEqual(self.code(*words, env=env), 64, words)
        self.assertEqual(self.code("release", env={"LATCHKEY_TOKEN": token}), 0)

    def test_the_token_of_run(self):
        """Its command may ask and extend; several locks are one hold."""
        tool = support.tool
        for options in ((), ("--also", self.name + ":2")):
            made = self.latchkey("run", *options, self.name, "--shell",
                                 f"{tool} held && {tool} extend --lease 5m && {tool} --json held")
            self.assertEqual((made.returncode, made.stderr), (0, ""))
            self.assertGreater(json.loads(made.stdout.splitlines()[-1])["remaining_ms"], 200_000)
            self.assertTrue(self.is_free(self.name))

    def test_usage(self):
        for words in ((), (self.name,), ("--lease", "0", self.name), ("--lease", "forever", self.name),
                      ("--lease", "x", self.name), ("--lease", "1m", ""), ("--lease", "1m"),
                      ("--lease", "1m", "--kind", "lok", self.name), ("--lease", "1m", "-n", "-w", "1s", self.name),
                      ("--lease", "1m", self.name, self.name), ("--lease", "5000d", self.name)):
            made = self.latchkey("acquire", *words)
            self.assertEqual((made.returncode, made.stdout), (64, ""), words)

    def test_waiting_for_the_server(self):
        """Its own words are told."""
        full = support.Server("--maxmemory", "1")
        self.addCleanup(full.stop)
        waiter = self.begin("acquire", "--lease", "1m", self.name, env={"LATCHKEY_URI": full.uri})
        line = waiter.stderr.readline()
        self.assertIn("waiting for an answer about " + self.name, line)
        self.assertIn("OOM", line)
        full.cli("CONFIG", "SET", "maxmemory", "0")
        self.assertEqual(waiter.wait(support.PATIENCE), 0)

    def test_busy_and_waiting(self):
        holder = self.hold(self.name)
        began = time.monotonic()
        made = self.latchkey("acquire", "--lease", "1m", "-w", "300ms", self.name)
        self.assertEqual((made.returncode, made.stdout, made.stderr), (75, "", f"latchkey: {self.name} is still busy\n"))
        self.assertGreater(time.monotonic() - began, 0.29)
        self.assertEqual(self.latchkey("-q", "acquire", "-n", "--lease", "1m", self.name).stderr, "")
        waiter = self.begin("acquire", "--lease", "1m", self.name)
        self.assertEqual(waiter.stderr.readline(), f"latchkey: waiting for {self.name}, which somebody else holds\n")
        self.assertTrue(wait_until(lambda: "1" in self.server.cli("PUBSUB", "NUMSUB", f"redisson_lock__channel:{{{self.name}}}")
                                   .splitlines()))
        holder.stdin.close()
        self.assertEqual(waiter.wait(support.PATIENCE), 0)
        token = waiter.stdout.read().strip()
        self.assertEqual(self.code("release", token), 0)

    def test_nobody_hears_of_it(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            made = subprocess.run([support.tool, "acquire", "--lease", "1m", self.name], stdout=full,
                                  env=self.environment(), check=False, stderr=subprocess.PIPE)
        self.assertEqual(made.returncode, 70)
        self.assertTrue(self.is_free(self.name))

    def test_a_killed_extend_releases_nothing(self):
        token = self.take(self.name)
        self.server.pause()
        process = self.begin("extend", token)
        process.kill()
        process.wait()
        self.server.resume()
        self.assertEqual(self.code("held", token), 0)
        self.assertEqual(self.code("release", token), 0)

    def test_a_refused_extend_releases_nothing(self):
        server = Server()
        self.addCleanup(server.stop)
        env = {"LATCHKEY_URI": server.uri}
        token = self.latchkey("acquire", "--lease", "1m", self.name, env=env).stdout.strip()
        server.cli("ACL", "SETUSER", "default", "-pexpire")
        made = self.latchkey("extend", token, env=env)
        self.assertEqual(made.returncode, 77, made.stderr)
        server.cli("ACL", "SETUSER", "default", "+pexpire")
        self.assertEqual(server.cli("EXISTS", self.name), "1")
        self.assertEqual(self.code("release", token, env=env), 0)

    def test_who_says_by_hand(self):
        token = self.take(self.name)
        text = self.latchkey("who", self.name).stdout
        self.assertIn("taken by hand", text)
        self.assertIn(inside(token)["owner"], text)
        self.code("release", token)

    def test_json(self):
        made = self.latchkey("--json", "acquire", "--lease", "90s", "--kind", "fenced", self.name)
        said = json.loads(made.stdout)
        self.assertEqual((said["schema"], said["name"], said["kind"], said["lease_ms"]), (1, self.name, "fenced", 90_000))
        self.assertEqual(said["fence"], 1)
        token = said["token"]
        self.assertEqual(inside(token)["fence"], 1)
        said = json.loads(self.latchkey("--json", "extend", token).stdout)
        self.assertEqual((said["schema"], said["held"]), (1, True))
        self.assertEqual(json.loads(self.latchkey("--json", "release", token).stdout)["released"], True)
        self.assertEqual(json.loads(self.latchkey("--json", "release", token).stdout)["released"], False)
        self.assertEqual(json.loads(self.latchkey("--json", "held", token).stdout)["remaining_ms"], None)

    def test_server_away(self):
        away = {"LATCHKEY_URI": f"unix://{self.folder}/nothing"}
        token = self.take(self.name)
        for words in (("acquire", "--lease", "1m", self.name), ("held", token), ("extend", token), ("release", token),
                      ("force-unlock", "--any", "--yes", self.name)):
            self.assertEqual(self.code(*words, env=away), 69, words)
        began = time.monotonic()
        self.assertEqual(self.code("acquire", "-n", "--lease", "1m", self.name, env=away), 69)
        self.assertLess(time.monotonic() - began, 4)  # 2 s, and not the 5 s of who waits
        self.code("release", token)

    def test_the_loop_of_the_help(self):
        """What the text of acquire shows."""
        script = f'token=$("$0" acquire --lease 10m {self.name}) || exit; "$0" held "$token" && "$0" release "$token"'
        made = subprocess.run(["sh", "-c", script, support.tool], env=self.environment(), capture_output=True, text=True,
                              check=False)
        self.assertEqual((made.returncode, made.stderr), (0, ""))

    def test_page(self):
        """The script that it shows."""
        page = (pathlib.Path(__file__).parents[2] / "docs/latchkey-run.md").read_text(encoding="utf-8")
        [block] = re.findall(r"```\n(token=.*?)```", page, re.DOTALL)
        names = f'latchkey() {{ "{support.tool}" "$@"; }}; dump_everything() {{ :; }}; send_it_away() {{ echo sent; }}\n'
        made = subprocess.run(["sh", "-c", names + block], env=self.environment(), capture_output=True, text=True,
                              check=False)
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        self.assertRegex(made.stdout, r"^backup is held and ends in (?:9|10) min\nsent\n$")
        self.assertTrue(self.is_free("backup"))


class ForceUnlock(Case):
    def force(self, *words, **more):
        return self.latchkey("force-unlock", *words, **more)

    def owner(self, name):
        return self.server.cli("HKEYS", name).splitlines()[-1]

    def test_ends_a_holder_and_says_whom(self):
        for kind in KINDS:
            with self.subTest(kind):
                name = f"{self.name}:{kind}"
                token = self.latchkey("acquire", "--lease", "1h", "--kind", kind, name).stdout.strip()
                owner = inside(token)["owner"]
                made = self.force(name, "--holder", owner, "--yes")
                self.assertEqual((made.returncode, made.stderr), (0, ""))
                self.assertEqual(made.stdout, f"{name}: ended the hold of {owner}\n")
                self.assertTrue(self.is_free(name))
                self.assertEqual(self.force(name, "--any", "--yes").returncode, 1)

    def test_wakes_waiters(self):
        for kind in ("lock", "fair", "write", "plain"):
            with self.subTest(kind):
                name = f"{self.name}:{kind}"
                self.assertEqual(self.latchkey("acquire", "--lease", "1h", "--kind", kind, name).returncode, 0)
                waiter = self.begin("run", "--kind", kind, name, "true")
                self.assertIn("waiting for", waiter.stderr.readline())
                self.assertEqual(self.force(name, "--any", "--yes").returncode, 0)
                self.assertEqual(waiter.wait(support.PATIENCE), 0)

    def test_all_readers(self):
        for _ in range(3):
            self.latchkey("acquire", "--lease", "1h", "--kind", "read", self.name)
        made = self.force("--any", "--yes", self.name)
        self.assertEqual((made.returncode, len(made.stdout.splitlines())), (0, 3))
        self.assertTrue(self.is_free(self.name))

    def test_one_of_two_readers(self):
        tokens = [self.latchkey("acquire", "--lease", "1h", "--kind", "read", self.name).stdout.strip() for _ in range(2)]
        first, second = (inside(token)["owner"] for token in tokens)
        self.assertEqual(self.force(self.name, "--holder", first, "--yes").returncode, 0)
        self.assertEqual(set(self.server.cli("HKEYS", self.name).splitlines()), {"mode", second})

    def test_another_holder(self):
        self.hold(self.name)
        owner = self.owner(self.name)
        gone = "01234567-0123-0123-0123-0123456789ab:7"
        made = self.force(self.name, "--holder", gone, "--yes")
        self.assertEqual((made.returncode, made.stdout), (75, ""))
        self.assertIn(f"is held by another: {owner} (", made.stderr)
        self.assertEqual(self.owner(self.name), owner)
        self.assertEqual(self.force(self.name + ":free", "--holder", gone, "--yes").returncode, 1)

    def test_a_newer_holder_is_not_broken(self):
        """The one who was seen goes, and another comes, before anything is removed."""
        token = self.latchkey("acquire", "--lease", "1h", self.name).stdout.strip()
        seen = inside(token)["owner"]
        front, back = pty.openpty()
        self.addCleanup(os.close, front)
        process = self.begin("force-unlock", self.name, "--any", stdin=back)
        os.close(back)
        self.assertIn(f"end the hold of {seen} on", process.stderr.readline())
        self.assertEqual(self.latchkey("release", token).returncode, 0)
        self.hold(self.name)
        owner = self.owner(self.name)
        os.write(front, b"y\n")
        self.assertEqual(process.wait(support.PATIENCE), 75)
        self.assertIn(f"is held by another by now: {owner}", process.stderr.read())
        self.assertEqual(self.owner(self.name), owner)

    def test_confirmation(self):
        token = self.latchkey("acquire", "--lease", "1h", self.name).stdout.strip()
        made = self.force(self.name, "--any")
        self.assertEqual((made.returncode, made.stdout), (64, ""))
        self.assertIn("--yes", made.stderr)
        for answer, code in ((b"n\n", 64), (b"\n", 64), (b"y\n", 0)):
            front, back = pty.openpty()
            process = self.begin("force-unlock", self.name, "--any", stdin=back)
            os.close(back)
            self.assertIn("[y/N]", process.stderr.readline())
            os.write(front, answer)
            self.assertEqual(process.wait(support.PATIENCE), code, answer)
            os.close(front)
            self.assertEqual(self.is_free(self.name), code == 0)
        self.assertEqual(self.latchkey("held", token).returncode, 1)

    def test_usage(self):
        for words in ((self.name,), (self.name, "--yes"), (self.name, "--any", "--holder", "x"), ("--any", "--yes"),
                      (self.name, "--holder", "x", "--yes"), ("", "--any", "--yes"), (self.name, "a", "--any", "--yes")):
            self.assertEqual(self.force(*words).returncode, 64, words)

    def test_no_lock_and_no_right(self):
        self.server.cli("SET", self.name, "text")
        self.assertEqual(self.force(self.name, "--any", "--yes").returncode, 76)
        self.assertFalse(self.is_free(self.name))
        for mode in "fast", "read":
            self.server.cli("DEL", self.name)
            self.server.cli("HSET", self.name, "mode", mode, "user", "x")
            self.assertEqual(self.force(self.name, "--any", "--yes").returncode, 76, mode)
            self.assertEqual(self.server.cli("HGET", self.name, "user").strip(), "x")
        server = Server()
        self.addCleanup(server.stop)
        env = {"LATCHKEY_URI": server.uri}
        self.latchkey("acquire", "--lease", "1h", self.name, env=env)
        server.cli("ACL", "SETUSER", "default", "-del")
        made = self.force(self.name, "--any", "--yes", env=env)
        self.assertEqual(made.returncode, 77)
        self.assertIn("+del", made.stderr)

    def test_runbook(self):
        """The lines that it shows."""
        page = (pathlib.Path(__file__).parents[2] / "docs/runbook.md").read_text(encoding="utf-8")
        [line] = re.findall(r"^ *latchkey (force-unlock .*)$", page, re.MULTILINE)
        self.assertEqual(re.findall(r"^ *latchkey (status .*)$", page, re.MULTILINE), ["status backup"])
        owner = "6c6b6579-8dd3-4d3c-9c0f-0a6cc5a9c6b3:1"
        self.server.cli("HSET", "backup", owner, 1)
        self.assertIn(owner, self.latchkey("status", "backup").stdout)
        made = self.latchkey(*shlex.split(line), "--yes")
        self.assertEqual((made.returncode, made.stdout), (0, f"backup: ended the hold of {owner}\n"))

    def test_json(self):
        token = self.latchkey("acquire", "--lease", "1h", self.name).stdout.strip()
        made = self.latchkey("--json", "force-unlock", "--any", "--yes", self.name)
        said = json.loads(made.stdout)
        self.assertEqual((said["schema"], said["name"], said["ended"], said["count"]),
                         (1, self.name, inside(token)["owner"], 1))


if __name__ == "__main__":
    support.main()
