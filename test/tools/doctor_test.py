"""`latchkey doctor`: a server with one fault each, and exactly that row is not ok."""

import json
import pathlib
import re
import time

import support
from support import Case, Proxy, Server, free_port, wait_until

# What a server without an append-only file always says; those of the other tests have one.
AOF = ("--appendonly", "yes")
IDS = ["reach", "auth", "role", "version", "topology", "latency", "rights.lock", "kill", "client-list", "pubsub",
       "eviction", "memory", "persistence", "replicas", "clock", "keyspace", "idle", "pubsub-buffer", "slow"]


class Doctor(Case):
    def start(self, *settings):
        server = Server(*settings)
        self.addCleanup(server.stop)
        return server

    def proxy(self, change, *settings):
        made = Proxy(self.start(*AOF, *settings), self.folder, change)
        self.addCleanup(made.stop)
        return made

    def examine(self, server, *words, **env):
        made = self.latchkey("--json", "doctor", *words, env={"LATCHKEY_URI": server.uri, **env})
        self.assertEqual(made.stderr, "")
        rows = {row["id"]: row for row in map(json.loads, made.stdout.splitlines())}
        self.assertEqual(made.returncode, int(any(row["verdict"] == "FAIL" for row in rows.values())))
        self.assertEqual({row["schema"] for row in rows.values()}, {1})
        return rows

    def assert_only(self, server, verdict, name, *words, text=".", **env):
        """Exactly this row is bad."""
        rows = self.examine(server, *words, **env)
        self.assertEqual({row["id"]: row["verdict"] for row in rows.values() if row["verdict"] not in ("ok", "skip")},
                         {name: verdict}, rows)
        self.assertRegex(rows[name]["text"], text)
        self.assertTrue(rows[name]["remedy"])
        return rows

    def test_nothing_is_wrong(self):
        server = self.start(*AOF)
        every = "lock,fair,fenced,spin,plain,non-reentrant,read,write,semaphore"
        rows = self.examine(server, "--kind", every)
        self.assertEqual({row["verdict"] for row in rows.values()}, {"ok"}, rows)
        self.assertEqual([row for row in rows if not row.startswith("rights")],
                         [name for name in IDS if not name.startswith("rights")])
        self.assertEqual({row for row in rows if row.startswith("rights")}, {f"rights.{kind}" for kind in every.split(",")})
        self.assertEqual(server.cli("KEYS", "*doctor*"), "")
        made = self.latchkey("doctor", env={"LATCHKEY_URI": server.uri})
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        self.assertEqual([line.split(":")[0] for line in made.stdout.splitlines()], [f"ok {name}" for name in IDS])

    def test_80_columns(self):
        """On a terminal no line is parted in a word; the words are those that a program reads."""
        server = self.start("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
        plain = self.latchkey("doctor", env={"LATCHKEY_URI": server.uri}).stdout
        self.assertGreater(max(map(len, plain.splitlines())), 80)
        code, shown = support.on_terminal(self.environment(LATCHKEY_URI=server.uri), "doctor", columns=80)
        self.assertEqual(code, 1)
        self.assertLessEqual(max(map(len, shown.splitlines())), 80, shown)

        def told(text):  # but for figures, which differ, also in sign
            return re.sub(r"-?\d+", "N", " ".join(text.split()))
        self.assertEqual(told(shown), told(plain))

    def test_runbook(self):
        """Its table has every check."""
        page = (pathlib.Path(__file__).parents[2] / "docs/runbook.md").read_text(encoding="utf-8")
        cells = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
        named = [name.replace("rights.KIND", "rights.lock") for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
        self.assertEqual(sorted(named), sorted(IDS))

    def test_reach(self):
        made = self.latchkey("doctor", env={"LATCHKEY_URI": f"unix://{self.folder}/nothing"})
        self.assertEqual(made.returncode, 1)
        self.assertRegex(made.stdout, r"^FAIL reach: .*; .*\n$")

    def test_auth(self):
        server = self.start("--requirepass", "secret")
        made = self.latchkey("doctor", env={"LATCHKEY_URI": server.uri})
        self.assertEqual((made.returncode, len(made.stdout.splitlines())), (1, 2))
        self.assertIn("\nFAIL auth: ", made.stdout)
        made = self.latchkey("doctor", env={"LATCHKEY_URI": server.uri, "LATCHKEY_PASSWORD": "sesame"})
        self.assertEqual(made.returncode, 1)
        self.assertRegex(made.stdout, r"^FAIL auth: ")
        self.assertNotIn("sesame", made.stdout + made.stderr)

    def test_a_user_without_a_password(self):
        """As the library: it is not the default user."""
        self.start("--port", port := str(free_port()))
        for words in (("doctor",), ("status", "a")):
            made = self.latchkey(*words, env={"LATCHKEY_URI": f"redis://ghost@127.0.0.1:{port}"})
            self.assertIn("WRONGPASS", made.stdout + made.stderr)

    def test_role(self):
        primary = self.start(*AOF, "--port", "0")
        server = self.start(*AOF, "--replicaof", "127.0.0.1", "1")
        rows = self.examine(server)
        self.assertEqual(rows["role"]["verdict"], "FAIL")
        self.assertEqual({name for name, row in rows.items() if row["verdict"] == "FAIL"}, {"role", "rights.lock"})
        self.assertEqual(self.examine(primary)["role"]["verdict"], "ok")

    def test_version(self):
        old = self.proxy(lambda data: re.sub(rb"redis_version:7\.", b"redis_version:5.", data))
        self.assert_only(old, "FAIL", "version", text=r"^5\.")

    def test_version_unknown(self):
        other = self.proxy(lambda data: data.replace(b"redis_version:", b"other_version:"))
        self.assert_only(other, "warn", "version")

    def test_latency(self):
        late = 0

        def slow(data):
            nonlocal late
            if data == b"+PONG\r\n" and late:
                late -= 1
                time.sleep(0.3)
            return data
        # A command that a busy machine made slow is a row of its own.
        server = self.proxy(slow, "--slowlog-log-slower-than", "-1")
        for verdict, lease in ("warn", "2500ms"), ("FAIL", "600ms"):
            late = 3
            self.assert_only(server, verdict, "latency", "--lease", lease)

    def test_rights(self):
        """The words that grant what each kind misses here are named; of a script the server does not say which it was."""
        for kind, word in (("lock", "hincrby"), ("lock", "pexpire"), ("fair", "rpush"), ("plain", "set"),
                           ("semaphore", "zadd"), ("read", "hset")):
            with self.subTest(kind=kind, word=word):
                server = self.start(*AOF)
                server.cli("ACL", "SETUSER", "default", f"-{word}")
                rows = self.assert_only(server, "FAIL", f"rights.{kind}", "--kind", kind, text="can't run this command")
                self.assertIn(f"+{word} ", rows[f"rights.{kind}"]["remedy"])

    def test_an_admin_tells_which_right(self):
        server = self.start(*AOF)
        admin = self.folder / "admin"
        admin.write_text(server.uri + "\n")
        server.cli("ACL", "SETUSER", "till", "on", ">pw", "allkeys", "allchannels", "+@all", "-pexpire")
        user = {"LATCHKEY_USERNAME": "till", "LATCHKEY_PASSWORD": "pw"}
        self.assert_only(server, "FAIL", "rights.lock", "--admin-uri-file", admin, text="'pexpire' command", **user)

    def test_spin_locks_need_no_messages(self):
        server = self.start(*AOF)
        server.cli("ACL", "SETUSER", "default", "-publish", "-subscribe")
        rows = self.examine(server, "--kind", "spin")
        self.assertEqual({name: row["verdict"] for name, row in rows.items() if row["verdict"] != "ok"}, {"pubsub": "skip"})

    def test_rights_of_keys(self):
        server = self.start(*AOF)
        server.cli("ACL", "SETUSER", "till", "on", ">pw", "allcommands", "allchannels", "~orders:*", "~redisson_*")
        user = {"LATCHKEY_USERNAME": "till", "LATCHKEY_PASSWORD": "pw"}
        rows = self.examine(server, **user)
        self.assertEqual(rows["rights.lock"]["verdict"], "FAIL")
        rows = self.examine(server, "--scratch", "orders", **user)
        self.assertEqual(rows["rights.lock"]["verdict"], "ok", rows)

    def test_rights_of_messages(self):
        server = self.start(*AOF)
        server.cli("ACL", "SETUSER", "default", "-publish")
        rows = self.examine(server)
        self.assertEqual({name: row["verdict"] for name, row in rows.items() if row["verdict"] != "ok"},
                         {"rights.lock": "warn", "pubsub": "warn"})

    def test_rights_of_a_user(self):
        """By an admin's connection, without using anything."""
        server = self.start(*AOF)
        admin = self.folder / "admin"
        admin.write_text(server.uri + "\n")
        for kind in ("lock", "fair", "fenced", "spin", "plain", "non-reentrant", "read", "semaphore"):
            words = self.rights(kind)
            server.cli("ACL", "SETUSER", "till", "reset", "resetchannels", "on", ">pw",
                       *(word.replace("NAME", "orders:*") for word in words))
            user = {"LATCHKEY_USERNAME": "till", "LATCHKEY_PASSWORD": "pw"}
            options = ("--kind", kind, "--scratch", "orders")
            rows = self.examine(server, *options, "--admin-uri-file", admin, "--user", "till", **user)
            self.assertEqual(rows[f"rights.{kind}"]["verdict"], "ok", rows)
            self.assertEqual(self.examine(server, *options, **user)[f"rights.{kind}"]["verdict"], "ok")
            server.cli("ACL", "SETUSER", "till", "-pttl" if kind != "semaphore" else "-zadd")
            rows = self.examine(server, *options, "--admin-uri-file", admin, "--user", "till", **user)
            self.assertEqual(rows[f"rights.{kind}"]["verdict"], "FAIL", rows)
            self.assertIn("pttl" if kind != "semaphore" else "zadd", rows[f"rights.{kind}"]["text"])
        self.assertEqual(self.latchkey("doctor", "--user", "till").returncode, 64)

    @staticmethod
    def rights(kind):
        """The words that README.md says."""
        root = pathlib.Path(__file__).parents[2]
        rows = re.findall(r"^\| (?:`get_(\w+)`|every client) \| (.*) \|$", (root / "README.md").read_text(encoding="utf-8"),
                          re.MULTILINE)
        getter = {"lock": "lock", "read": "read_write_lock", "semaphore": "permit_semaphore",
                  "non-reentrant": "non_reentrant_lock"}.get(kind, f"{kind}_lock")
        return [word.replace("\\|", "|") for name, cells in rows if name in ("", getter)
                for word in cells.replace("`", "").replace(" | ", " ").split() if word != "|"]

    def test_the_remedy_is_that_of_the_readme(self):
        for kind in ("lock", "fair", "fenced", "spin", "plain", "non-reentrant", "read", "write", "semaphore"):
            server = self.start(*AOF)
            server.cli("ACL", "SETUSER", "default", "-pexpire", "-pttl", "-zadd")
            said = self.examine(server, "--kind", kind)[f"rights.{kind}"]["remedy"].split()
            known = {word.replace("NAME", "latchkey-doctor:*") for word in self.rights("read" if kind == "write" else kind)}
            every = {word.replace("NAME", "latchkey-doctor:*") for word in self.rights("none")}
            self.assertEqual(set(said[3:]), known - every | {"+evalsha", "+eval"}, kind)

    def test_the_remedies_of_a_user_who_may_nothing(self):
        """Once they have been followed nothing is refused."""
        server = self.start(*AOF)
        server.cli("ACL", "SETUSER", "till", "on", ">pw", "+@connection", "+role", "+info")
        user = {"LATCHKEY_USERNAME": "till", "LATCHKEY_PASSWORD": "pw"}
        before = self.examine(server, "--kind", "lock,plain", **user)
        for name in ("rights.lock", "rights.plain", "pubsub"):
            self.assertNotEqual(before[name]["verdict"], "ok")
            server.cli("ACL", "SETUSER", "till", *before[name]["remedy"].split(",")[0].split()[3:])
        server.cli("ACL", "SETUSER", "till", "+script|exists")
        after = self.examine(server, "--kind", "lock,plain", **user)
        for name in ("rights.lock", "rights.plain", "pubsub"):
            self.assertEqual(after[name]["verdict"], "ok", after[name])

    def test_no_right_is_missing(self):
        """What helps then is not a right."""
        full = self.start(*AOF, "--maxmemory", "1")
        rows = self.examine(full)
        self.assertEqual(rows["rights.lock"]["verdict"], "FAIL")
        self.assertIn("maxmemory", rows["rights.lock"]["remedy"])
        self.assertNotIn("ACL", rows["rights.lock"]["remedy"])

    def test_a_snapshot_that_failed(self):
        server = self.start(*AOF, "--save", "3600", "1")
        (pathlib.Path(server.cli("CONFIG", "GET", "dir").split()[1]) / "dump.rdb").mkdir()
        server.cli("SET", "something", "to save")
        server.cli("BGSAVE")
        self.assertTrue(wait_until(lambda: "rdb_last_bgsave_status:err" in server.cli("INFO", "persistence")))
        rows = self.examine(server)
        self.assertEqual([rows[name]["verdict"] for name in ("persistence", "rights.lock")], ["FAIL", "FAIL"])
        self.assertIn("MISCONF", rows["rights.lock"]["text"])
        self.assertNotIn("ACL", rows["rights.lock"]["remedy"])

    def test_a_snapshot_that_failed_where_settings_are_refused(self):
        """Writes may be taken all the same."""
        server = self.start(*AOF, "--stop-writes-on-bgsave-error", "no")
        (pathlib.Path(server.cli("CONFIG", "GET", "dir").split()[1]) / "dump.rdb").mkdir()
        server.cli("BGSAVE")
        self.assertTrue(wait_until(lambda: "rdb_last_bgsave_status:err" in server.cli("INFO", "persistence")))
        self.assert_only(server, "warn", "persistence")
        server.cli("ACL", "SETUSER", "default", "-config")
        self.assert_only(server, "warn", "persistence", text="CONFIG is refused")

    def test_kill_and_client_list(self):
        for word, name in (("client|kill", "kill"), ("client|list", "client-list")):
            server = self.start(*AOF)
            server.cli("ACL", "SETUSER", "default", f"-{word}")
            self.assert_only(server, "warn", name, text="client")

    def test_pubsub(self):
        """A proxy that passes answers on, but no messages."""
        def mute(data):
            return b"" if b"\r\n$7\r\nmessage\r\n" in data else data
        self.assertEqual(self.examine(self.proxy(mute))["pubsub"]["verdict"], "warn")

    def test_eviction(self):
        self.assert_only(self.start(*AOF, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"), "FAIL", "eviction",
                         text="allkeys-lru")

    def test_memory(self):
        server = self.start(*AOF)
        server.cli("SETRANGE", "filler", 60_000_000, "x")
        used = int(re.search(r"used_memory:(\d+)", server.cli("INFO", "memory"))[1])
        server.cli("CONFIG", "SET", "maxmemory", used * 100 // 95)
        self.assert_only(server, "warn", "memory", text="%")
        evicts = self.start(*AOF, "--maxmemory-policy", "allkeys-random")
        for i in range(20):
            evicts.cli("SETRANGE", f"filler{i}", 100_000, "x")
        evicts.cli("CONFIG", "SET", "maxmemory", 1_500_000)
        evicts.cli("SET", "one", "more")
        evicts.cli("CONFIG", "SET", "maxmemory", 0)
        self.assert_only(evicts, "warn", "memory", text="evicted")

    def test_persistence(self):
        self.assert_only(self.start(), "warn", "persistence")
        made = self.latchkey("doctor", "--strict", env={"LATCHKEY_URI": self.start().uri})
        self.assertEqual(made.returncode, 1)

    def test_replicas(self):
        primary = self.start(*AOF, "--port", str(free_port(below=55_000)))
        port = primary.cli("CONFIG", "GET", "port").split()[1]
        self.start("--replicaof", "127.0.0.1", port)
        self.assertTrue(wait_until(lambda: "connected_slaves:1" in primary.cli("INFO", "replication")))
        self.assert_only(primary, "warn", "replicas", text="failover")
        primary.cli("CONFIG", "SET", "min-replicas-to-write", 1)
        self.assertTrue(wait_until(lambda: "min_slaves_good_slaves:1" in primary.cli("INFO", "replication")))
        self.assertEqual(self.examine(primary)["replicas"]["verdict"], "ok")

    def test_clock(self):
        seen = []

        def jump(data):
            if re.fullmatch(rb"\*2\r\n\$10\r\n(\d{10})\r\n\$\d\r\n\d+\r\n", data):
                seen.append(data)
                if len(seen) % 5 == 4:
                    return re.sub(rb"\d{10}", lambda found: str(int(found[0]) + 5).encode(), data, count=1)
            return data
        self.assert_only(self.proxy(jump), "FAIL", "clock", text="jumped by")

    def test_keyspace(self):
        uuid = "01234567-0123-0123-0123-0123456789ab"
        server = self.start(*AOF)
        server.cli("HSET", "a b", f"{uuid}:7", 1)
        server.cli("HSET", "no lock", "field", 1)
        self.assert_only(server, "warn", "keyspace", text="'a b'")
        server.cli("DEL", "a b")
        server.cli("SET", "orders", "text")
        server.cli("SET", "redisson_lock_token:{orders}", 7)
        self.assert_only(server, "FAIL", "keyspace", text="orders is a string")

    def test_a_keyspace_without_an_end(self):
        """As what is no Redis server may say it: pages without keys, and never the last."""
        server = self.proxy(lambda data: data.replace(b"*2\r\n$1\r\n0\r\n*0\r\n", b"*2\r\n$1\r\n7\r\n*0\r\n"))
        row = self.examine(server)["keyspace"]
        self.assertEqual((row["verdict"], row["text"]), ("ok", "0 keys looked at; then the look was cut short"))

    def test_idle(self):
        self.assert_only(self.start(*AOF, "--timeout", "10"), "warn", "idle", text="10 s")

    def test_pubsub_buffer(self):
        self.assert_only(self.start(*AOF, "--client-output-buffer-limit", "pubsub", "512kb", "8kb", "60"), "warn",
                         "pubsub-buffer", text="8192")

    def test_slow(self):
        server = self.start(*AOF)
        server.cli("EVAL", "local t = redis.call('time') local e = t[1] * 1000000 + t[2] + 150000 "
                           "repeat t = redis.call('time') until t[1] * 1000000 + t[2] > e", 0)
        self.assert_only(server, "warn", "slow", "--lease", "1s")

    def test_topology(self):
        server = self.start(*AOF, "--cluster-enabled", "yes", "--port", str(free_port(below=55_000)))
        self.assertEqual(self.examine(server)["topology"]["verdict"], "FAIL")

    def test_what_cannot_be_read_is_skipped(self):
        server = self.start()
        server.cli("ACL", "SETUSER", "till", "on", ">pw", "allkeys", "allchannels", "+@all", "-info", "-config",
                   "-slowlog", "-role", "-scan", "-time")
        user = {"LATCHKEY_USERNAME": "till", "LATCHKEY_PASSWORD": "pw"}
        rows = self.examine(server, **user)
        skipped = {name for name, row in rows.items() if row["verdict"] == "skip"}
        self.assertEqual(skipped, {"version", "topology", "eviction", "memory", "persistence", "replicas", "idle",
                                   "pubsub-buffer", "slow", "role", "keyspace", "clock"})
        admin = self.folder / "admin"
        admin.write_text(server.uri + "\n")
        rows = self.examine(server, "--admin-uri-file", admin, **user)
        self.assertEqual({name for name, row in rows.items() if row["verdict"] == "skip"}, {"role", "clock"})
        self.assertEqual(rows["persistence"]["verdict"], "warn")

    def test_usage(self):
        for words in (("--kind", "lok"), ("--kind", ""), ("--user", "x"), ("--lease", "forever"), ("name",)):
            self.assertEqual(self.latchkey("doctor", *words).returncode, 64, words)
        self.assertEqual(self.latchkey("doctor", "--admin-uri-file", "/no/such").returncode, 78)


if __name__ == "__main__":
    support.main()
