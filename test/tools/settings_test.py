"""C1 to C4: messages, durations, where the URI comes from, secrets."""

import json
import subprocess

import support
from support import Case, Server


class Settings(Case):
    def test_C1_streams(self):
        made = self.latchkey("--help")
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        self.assertTrue(made.stdout.startswith("Usage: latchkey "))
        made = self.latchkey("--version")
        self.assertRegex(made.stdout, r"^latchkey \d+\.\d+\.\d+ \(Boost 1\.\d+\.\d+, hiredis \d+\.\d+\.\d+\)\n$")
        made = self.latchkey("run", "--help")
        self.assertTrue(made.stdout.startswith("Usage: latchkey run "))
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.assertEqual(subprocess.run([support.tool, "--help"], stdout=full, check=False).returncode, 70)

    def test_C1_names_are_quoted(self):
        for name, shown in (("a b", "'a b'"), ("it's", "'it'\\''s'"), ("a\x1b[31mb", "$'a\\x1b[31mb'"), ("a:b", "a:b")):
            self.hold(name)
            made = self.latchkey("run", "-n", name, "true")
            self.assertEqual(made.stderr, f"latchkey: {shown} is still busy\n")
            self.assertEqual(self.latchkey("-q", "run", "-n", name, "true").stderr, "")

    def test_C1_json(self):
        """One object a line, with its schema; times are whole milliseconds."""
        token = self.latchkey("acquire", "--lease", "1h", self.name).stdout.strip()
        spare = f"{self.name}:spare"
        for code, words in ((0, ("status", self.name)), (1, ("status", spare)), (0, ("list",)), (0, ("held", token)),
                            (0, ("extend", "--lease", "2h", token)),
                            (0, ("acquire", "--lease", "1m", spare)), (0, ("bench", "--duration", "100ms", "--threads", "1")),
                            (0, ("doctor",)), (0, ("force-unlock", spare, "--any", "--yes")), (0, ("release", token)),
                            (1, ("held", token))):
            made = self.latchkey("--json", *words)
            self.assertEqual(made.returncode, code, f"{words}: {made.stderr}")
            objects = [json.loads(line) for line in made.stdout.splitlines()]
            self.assertTrue(objects, words)
            for one in objects:
                self.assertEqual(one["schema"], 1, words)
                times = {name: value for name, value in one.items() if name.endswith("_ms")}
                self.assertTrue(all(value is None or isinstance(value, int) for value in times.values()), f"{words}: {times}")

    def test_C1_colour(self):
        """No escape sequence where nobody looks."""
        for words in (("doctor",), ("status", self.name), ("list",), ("--help",)):
            made = self.latchkey(*words)
            self.assertNotIn("\x1b", made.stdout + made.stderr)

    def test_C2_durations(self):
        for good in ("250ms", "30s", "1m30s", "2h", "1d", "0.5s", "7", "0.25", "1d2h3m4s5ms", "0", "forever", "1.5m",
                     "0.0000000000000000001s"):
            made = self.latchkey("run", "--wait", good, self.name, "true")
            self.assertEqual((made.returncode, made.stderr), (0, ""), good)
        for bad in ("", "s", "1x", "1 s", "-1", "+1", "1s30m", "1ss", "1.", ".5", "1e3", "0x10", "1s1", "1m30", "ever",
                    "1.5m30s", "99999999999999999999", "9999999d", "1m1m", "infinity", " 1"):
            made = self.latchkey("run", f"--wait={bad}", self.name, "true")
            self.assertEqual(made.returncode, 64, bad)

    def test_C3_where_the_uri_comes_from(self):
        """Each source alone is used, and before all those behind it."""
        elsewhere = "unix:///no/such/socket"
        (self.folder / "latchkey.uri").write_text(self.server.uri + "\n")
        (self.folder / "wrong").mkdir()
        (self.folder / "wrong/latchkey.uri").write_text(elsewhere + "\n")
        here = {"LATCHKEY_URI": self.server.uri, "LATCHKEY_URI_FILE": str(self.folder / "latchkey.uri"),
                "CREDENTIALS_DIRECTORY": str(self.folder)}
        away = {"LATCHKEY_URI": elsewhere, "LATCHKEY_URI_FILE": str(self.folder / "wrong/latchkey.uri"),
                "CREDENTIALS_DIRECTORY": str(self.folder / "wrong")}
        names = list(here)
        for i, name in enumerate(names):
            env = {**{other: "" for other in names[:i]}, name: here[name],
                   **{other: away[other] for other in names[i + 1:]}}
            self.assertEqual(self.latchkey("run", "-n", self.name, "true", env=env).returncode, 0, name)
        made = self.latchkey("run", "--uri", self.server.uri, "-n", self.name, "true", env=away)
        self.assertEqual(made.returncode, 0)
        # Behind the name of the subcommand and before it.
        made = self.latchkey("--uri", self.server.uri, "run", "-n", self.name, "true", env=away)
        self.assertEqual(made.returncode, 0)
        made = self.latchkey("run", "-n", self.name, "true", env={**here, "LATCHKEY_URI": elsewhere})
        self.assertEqual(made.returncode, 69)

    def test_C4_secrets(self):
        server = Server("--requirepass", "geheim")
        self.addCleanup(server.stop)
        (self.folder / "word").write_text("geheim\n")
        show = ["sh", "-c", "for one in $PPID $(cut -d' ' -f4 </proc/$PPID/stat); do"
                " tr '\\0' ' ' </proc/$one/cmdline; done"]
        for env in ({"LATCHKEY_PASSWORD": "geheim"}, {"LATCHKEY_PASSWORD_FILE": str(self.folder / "word")}):
            made = self.latchkey("run", "-v", self.name, *show, env={"LATCHKEY_URI": server.uri, **env})
            self.assertEqual(made.returncode, 0, made.stderr)
            self.assertIn("latchkey", made.stdout)
            self.assertNotIn("geheim", made.stdout + made.stderr)
        made = self.latchkey("run", self.name, "true", env={"LATCHKEY_URI": server.uri, "LATCHKEY_PASSWORD": "wrong"})
        self.assertEqual(made.returncode, 77)
        self.assertNotIn("wrong", made.stderr)

    def test_C4_password_on_the_command_line(self):
        for uri in ("redis://user:geheim@127.0.0.1", "redis://:geheim@127.0.0.1:1/0", "redis://u:geh@eim@127.0.0.1",
                    "redis://u:geh eim@127.0.0.1", "redis-sentinel://127.0.0.1:1/m?sentinel_password=geheim",
                    "redis-sentinel://127.0.0.1:1/m?sentinel_user=u&sentinel_password=geheim&x=y"):
            for words in (("--uri", uri), (f"--uri={uri}",)):
                made = self.latchkey("run", *words, self.name, "true")
                self.assertEqual(made.returncode, 64)
                self.assertIn("LATCHKEY_PASSWORD", made.stderr)
                self.assertNotIn("geh", made.stdout + made.stderr)
        # Nor does a slip of the hand show it.
        for words in ((f"redis://:geheim@localhost",), ("run", "--urrrri=redis://:geheim@localhost", "a", "true"),
                      ("run", "--wait", "redis://:geheim@localhost", "a", "true"),
                      ("run", "--wait", "redis-sentinel://a/m?sentinel_password=geheim&x=y", "a", "true")):
            made = self.latchkey(*words)
            self.assertEqual(made.returncode, 64)
            self.assertNotIn("geheim", made.stderr)
        made = self.latchkey("run", self.name, "true", env={"LATCHKEY_URI": "redis://:geheim@host:nonsense"})
        self.assertEqual(made.returncode, 78)
        self.assertNotIn("geheim", made.stderr)

    def test_C4_a_user_alone_is_no_secret(self):
        made = self.latchkey("run", "-n", "--uri", "redis://user@127.0.0.1:1", self.name, "true")
        self.assertEqual(made.returncode, 69)

    def test_nothing_is_a_shell(self):
        words = ["$(x)", '"q"', "*", "a  b", "", "--", "-n", "\\"]
        made = self.latchkey("run", self.name, "--", "printf", "%s\\n", *words)
        self.assertEqual(made.stdout, "".join(word + "\n" for word in words))
        made = self.latchkey("run", self.name, "printf", "%s\\n", *words)
        self.assertEqual(made.stdout, "".join(word + "\n" for word in words))
        made = self.latchkey("run", self.name, "-n", "--shell", "echo $((1 + 1)); exit 3")
        self.assertEqual((made.stdout, made.returncode), ("2\n", 3))
        made = self.latchkey("run", "--", self.name, "printf", "%s\\n", "--help")
        self.assertEqual(made.stdout, "--help\n")


if __name__ == "__main__":
    support.main()
