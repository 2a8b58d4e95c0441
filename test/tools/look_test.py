"""`list` and `wait`: what stands on the server, and that nothing is changed there."""

import contextlib
import json
import re
import signal
import socket
import subprocess
import threading
import time

import support
from support import Case, Proxy, Server, free_port, wait_until


def reached(port):
    try:
        socket.create_connection(("127.0.0.1", port)).close()
        return True
    except OSError:
        return False


class Look(Case):
    def setUp(self):
        super().setUp()
        self.server.cli("FLUSHALL")

    def lines(self, *words):
        made = self.latchkey("--json", "list", *words)
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        return {line["name"]: line for line in map(json.loads, made.stdout.splitlines())}

    def test_list(self):
        self.assertEqual(self.latchkey("list").stdout, "")
        for kind, name in (("lock", "a b"), ("fair", "fair"), ("read", "shared"), ("read", "shared"),
                           ("plain", "plain"), ("write", "alone")):
            self.hold(name, "--kind", kind)
        self.server.cli("HSET", "no lock", "field", "1")
        self.server.cli("HSET", "no uuid", "0123456-1", "1")
        self.server.cli("SET", "text", "text")
        self.server.cli("EVAL", "for i = 1, 5000 do redis.call('hset', KEYS[1], 'f' .. i, i) end", 1, "large")
        found = self.lines()
        self.assertEqual({name: line["kind"] for name, line in found.items()},
                         {"a b": "lock", "fair": "lock", "shared": "read", "alone": "write"})
        self.assertEqual({(line["schema"], line["held"]) for line in found.values()}, {(1, True)})
        for line in found.values():
            self.assertTrue(20_000 < line["remaining_ms"] <= 30_000, line)
            for holder in line["holders"]:
                self.assertEqual((holder["count"], holder["writes"]), (1, line["kind"] == "write"))
        self.assertEqual(len(found["shared"]["holders"]), 2)
        [holder] = found["a b"]["holders"]
        self.assertEqual(self.server.cli("HKEYS", "a b"), holder["owner"])
        self.assertEqual(set(self.lines("sh*")), {"shared"})
        self.assertEqual(len(self.lines("--limit", "2")), 2)
        self.assertEqual(set(self.lines("--kind", "plain")), {"plain"})
        text = self.latchkey("list", "a *").stdout
        self.assertRegex(text, rf"^'a b'  lock  {holder['owner']}  ends in \d+ s\n$")

    def test_status(self):
        made = self.latchkey("status", self.name)
        self.assertEqual((made.returncode, made.stdout), (1, f"{self.name} is free\n"))
        self.hold(self.name, "--kind", "fair")
        waiter = self.begin("run", "--kind", "fair", self.name, "true")
        self.assertIn("waiting for", waiter.stderr.readline())
        made = self.latchkey("--json", "who", self.name)
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        seen = json.loads(made.stdout)
        [holder] = seen["holders"]
        self.assertEqual((seen["schema"], seen["name"], seen["held"], holder["count"]), (1, self.name, True, 1))
        self.assertEqual(self.server.cli("HKEYS", self.name), holder["owner"])
        self.assertEqual(len(seen["line"]), 1)
        self.assertNotEqual(seen["line"], [holder["owner"]])
        self.assertTrue(0 < seen["remaining_ms"] <= 30_000)
        text = self.latchkey("status", self.name).stdout
        self.assertIn(f"  by {holder['owner']}\n", text)
        self.assertIn(f"  in line 1: {seen['line'][0]}\n", text)
        self.assertEqual(max(map(len, text.splitlines())) < 80, True, text)

    def test_status_of_permits(self):
        """A semaphore is busy when it has no permit to give."""
        self.hold(self.name, "--kind", "semaphore", "--permits", "2")
        made = self.latchkey("status", self.name)
        self.assertEqual((made.returncode, made.stdout), (1, f"{self.name} is a semaphore: 1 permit is free\n"))
        self.hold(self.name, "--kind", "semaphore")
        made = self.latchkey("status", self.name)
        self.assertEqual((made.returncode, made.stdout), (0, f"{self.name} is a semaphore: no permit is free\n"))
        waiter = self.begin("run", "--kind", "semaphore", self.name, "true")
        self.assertIn("waiting for", waiter.stderr.readline())
        made = self.latchkey("status", self.name)
        self.assertIn("  1 connection listens for a release\n", made.stdout)
        seen = json.loads(self.latchkey("--json", "status", self.name).stdout)
        self.assertEqual((seen["schema"], seen["kind"], seen["held"], seen["permits"], seen["listeners"]),
                         (1, "semaphore", True, 0, 1))
        self.server.cli("SET", "no permits", "text")
        self.assertEqual(self.latchkey("status", "no permits").returncode, 76)

    def test_status_of_others(self):
        uuid = "01234567-0123-0123-0123-0123456789ab"
        self.server.cli("HSET", self.name, f"{uuid}:7", "3")
        text = self.latchkey("status", self.name).stdout
        self.assertIn("no connection carries this id", text)
        self.assertIn("has no time to live", text)
        self.assertIn(f"{uuid}:7, 3 times", text)
        peer = subprocess.Popen(["redis-cli", "-s", self.server.socket], stdin=subprocess.PIPE, text=True,
                                stdout=subprocess.DEVNULL)
        self.addCleanup(peer.stdin.close)
        self.addCleanup(support.kill_group_of, peer)
        peer.stdin.write(f"CLIENT SETNAME latchkey:{uuid}:4711@host.example:report\nSUBSCRIBE "
                         f"redisson_lock__channel:{{{self.name}}}\n")
        peer.stdin.flush()

        def seen():
            return json.loads(self.latchkey("--json", "status", self.name).stdout)
        self.assertTrue(wait_until(lambda: seen()["listeners"] == 1))
        [holder] = seen()["holders"]
        self.assertEqual((holder["pid"], holder["host"], holder["program"]), (4711, "host.example", "report"))
        self.assertIn("report, process 4711 on host.example", self.latchkey("status", self.name).stdout)
        self.server.cli("SET", self.name, "text")
        self.assertEqual(self.latchkey("status", self.name).returncode, 76)

    def test_a_note(self):
        """Of who holds: why. What the server takes for the name of no connection is replaced."""
        holder = self.hold(self.name, "--note", "dump of {id}\nby J\u00f6rg")
        [seen] = json.loads(self.latchkey("--json", "status", self.name).stdout)["holders"]
        self.assertEqual((seen["pid"], seen["program"]), (holder.pid, "latchkey(dump_of__id__by_J__rg)"))
        self.assertEqual(self.latchkey("run", "--note", "x" * 201, self.name, "true").returncode, 64)

    def test_locks_of_redis_py(self):
        """A plain lock has whatever value its library gave it."""
        self.server.cli("SET", self.name, "8d3b1c4e5f60718293a4b5c6d7e8f901", "PX", "60000")
        made = self.latchkey("--json", "status", self.name)
        seen = json.loads(made.stdout)
        self.assertEqual((made.returncode, seen["held"], seen["kind"]), (0, True, "plain"))
        self.assertEqual(seen["holders"][0]["owner"], "8d3b1c4e5f60718293a4b5c6d7e8f901")
        self.assertEqual(self.latchkey("force-unlock", "--any", "--yes", self.name).returncode, 76)

    def test_a_number_with_an_end(self):
        """A lock of another library, or a semaphore: it does not say which."""
        self.server.cli("SET", self.name, "1", "NX", "PX", "60000")
        made = self.latchkey("status", self.name)
        self.assertEqual(made.returncode, 0)
        self.assertRegex(made.stdout, f"^{self.name} is a plain lock, or a semaphore with 1 free permit, "
                                      "and ends in \\d+ s unless renewed\n$")
        seen = json.loads(self.latchkey("--json", "status", self.name).stdout)
        self.assertEqual((seen["held"], seen["kind"], seen["holders"], seen["permits"]),
                         (True, "plain or semaphore", [], 1))
        self.assertEqual(self.latchkey("force-unlock", "--any", "--yes", self.name).returncode, 76)
        self.assertEqual(self.server.cli("GET", self.name), "1")
        self.server.cli("SET", self.name, "123456789012345678901", "PX", "60000")
        self.assertIn("is held (plain)", self.latchkey("status", self.name).stdout)

    def test_a_long_value(self):
        """Another library may have put anything there: its beginning is shown, and no more is asked for."""
        self.server.cli("SET", self.name, "\x1b[2J" + 60 * "x", "PX", "60000")
        self.server.cli("SETRANGE", self.name, 2_000_003, "x")
        before = int(re.search(r"total_net_output_bytes:(\d+)", self.server.cli("INFO", "stats"))[1])
        made = self.latchkey("status", self.name)
        self.assertEqual(made.returncode, 0)
        self.assertIn("  by $'\\x1b[2J" + 60 * "x" + "... (2000004 bytes)'\n", made.stdout)
        seen = json.loads(self.latchkey("--json", "status", self.name).stdout)
        self.assertEqual(seen["holders"][0]["owner"], "\x1b[2J" + 60 * "x" + "... (2000004 bytes)")
        for words in (("list", "--kind", "plain"), ("wait", "-w0", self.name)):
            self.latchkey(*words)
        self.server.cli("PERSIST", self.name)
        self.assertEqual(self.latchkey("status", self.name).returncode, 76)
        after = int(re.search(r"total_net_output_bytes:(\d+)", self.server.cli("INFO", "stats"))[1])
        self.assertLess(after - before, 1_000_000)

    def test_W4_status_needs_rights(self):
        server = Server()
        self.addCleanup(server.stop)
        server.cli("ACL", "SETUSER", "default", "-client|list")
        server.cli("HSET", self.name, "01234567-0123-0123-0123-0123456789ab:7", "3")
        made = self.latchkey("status", self.name, env={"LATCHKEY_URI": server.uri})
        self.assertEqual((made.returncode, made.stdout), (77, ""))
        self.assertIn("+client|list", made.stderr)

    def test_W4_missing_rights(self):
        """Of each command that is needed: one line with the words that grant it."""
        server = Server()
        self.addCleanup(server.stop)
        owner = "01234567-0123-0123-0123-0123456789ab:7"
        server.cli("HSET", "orders:1", owner, "3")
        server.cli("HSET", "others:1", owner, "3")
        server.cli("SET", "orders:2", owner)
        for refused, words in (("scan", ("list",)), ("hlen", ("list",)), ("hgetall", ("list",)), ("pttl", ("list",)),
                               ("getrange", ("list", "--kind", "plain")), ("pttl", ("wait", "orders:1")),
                               ("hgetall", ("watch", "orders:1")), ("type", ("status", "others:2")),
                               ("hgetall", ("status", "orders:1")), ("pubsub|numsub", ("status", "orders:1"))):
            with self.subTest(refused=refused, words=words):
                if refused == "type":
                    server.cli("SET", "others:2", "no lock")
                server.cli("ACL", "SETUSER", "default", f"-{refused}")
                made = self.latchkey(*words, env={"LATCHKEY_URI": server.uri})
                server.cli("ACL", "SETUSER", "default", f"+{refused}")
                self.assertEqual((made.returncode, made.stdout, len(made.stderr.splitlines())), (77, "", 1), made.stderr)
                self.assertIn(f" +{refused}", made.stderr)
        server.cli("ACL", "SETUSER", "till", "on", ">pw", "~orders:*", "+@all")
        made = self.latchkey("list", env={"LATCHKEY_URI": server.uri, "LATCHKEY_USERNAME": "till", "LATCHKEY_PASSWORD": "pw"})
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        self.assertRegex(made.stdout, r"^orders:1 .*\n$")

    def test_list_of_very_many(self):
        """By steps, and never by KEYS."""
        self.server.cli("EVAL", "for i = 1, 3000 do redis.call('hset', 'other:' .. i, 'f', i) end "
                        "for i = 1, 700 do redis.call('hset', 'n' .. i, 'mode', 'read') end", 0)
        self.assertEqual(len(self.lines()), 700)
        statistics = self.server.cli("INFO", "commandstats")
        self.assertIn("cmdstat_scan:", statistics)
        self.assertNotIn("cmdstat_keys:", statistics)

    def test_list_without_an_end(self):
        """As what is no Redis server may say it: a page that leads to itself."""
        proxy = Proxy(self.server, self.folder,
                      lambda data: data.replace(b"*2\r\n$1\r\n0\r\n*0\r\n", b"*2\r\n$1\r\n7\r\n*0\r\n"))
        self.addCleanup(proxy.stop)
        self.assertEqual(self.latchkey("list", env={"LATCHKEY_URI": proxy.uri}).returncode, 76)

    def test_wait(self):
        self.assertEqual(self.latchkey("wait", self.name, "-w0").returncode, 0)
        holder = self.hold(self.name)
        made = self.latchkey("wait", self.name, "-w0")
        self.assertEqual((made.returncode, made.stderr), (75, f"latchkey: {self.name} is still busy\n"))
        began = time.monotonic()
        self.assertEqual(self.latchkey("wait", "-w", "1.2s", self.name).returncode, 75)
        self.assertTrue(1.2 <= time.monotonic() - began < 3)
        made = self.latchkey("--json", "wait", "-w", "50ms", self.name)
        seen = json.loads(made.stdout)
        self.assertEqual((made.returncode, seen["schema"], seen["name"], seen["held"]), (75, 1, self.name, True))
        self.assertTrue(50 <= seen["waited_ms"] < 3000, seen)
        waiter = self.begin("wait", self.name)
        self.assertIn("waiting for", waiter.stderr.readline())
        before = self.server.cli("HGETALL", self.name)
        holder.stdin.close()
        self.assertEqual(waiter.wait(support.PATIENCE), 0)
        self.assertNotEqual(before, "")
        self.assertTrue(self.is_free(self.name))
        seen = json.loads(self.latchkey("--json", "wait", self.name).stdout)
        self.assertEqual((seen["schema"], seen["name"], seen["held"]), (1, self.name, False))

    def test_wait_for_the_end_of_a_lease(self):
        self.server.cli("EVAL", "redis.call('hset', KEYS[1], 'somebody:1', 1) redis.call('pexpire', KEYS[1], 400)", 1,
                        self.name)
        began = time.monotonic()
        self.assertEqual(self.latchkey("wait", self.name).returncode, 0)
        self.assertTrue(0.2 < time.monotonic() - began < 3)

    def test_watch(self):
        """Each change is a line; the end of a lease, which nobody tells, as well."""
        other = "other:" + self.name
        watcher = self.begin("--json", "watch", self.name, other)

        def next_line():
            line = json.loads(watcher.stdout.readline())
            return line["name"], line["held"], line["kind"]
        self.assertEqual([next_line(), next_line()], [(self.name, False, None), (other, False, None)])
        holder = self.hold(self.name, "--kind", "write")
        self.assertEqual(next_line(), (self.name, True, "write"))
        self.server.cli("SET", other, "01234567-0123-0123-0123-0123456789ab:7", "PX", "2000")
        self.assertEqual(next_line(), (other, True, "plain"))
        self.assertEqual(next_line(), (other, False, None))
        holder.stdin.close()
        self.assertEqual(next_line(), (self.name, False, None))
        watcher.send_signal(signal.SIGINT)
        self.assertEqual(watcher.wait(support.PATIENCE), -signal.SIGINT)
        text = self.begin("watch", "a b")
        self.assertEqual(text.stdout.readline(), "'a b'  free\n")

    def test_a_restart(self):
        """Whoever looks for long is told, and goes on."""
        server = Server()
        self.addCleanup(lambda: server.stop())
        env = {"LATCHKEY_URI": server.uri}
        server.cli("HSET", self.name, "01234567-0123-0123-0123-0123456789ab:7", "1")
        watcher, waiter = (self.begin(*words, self.name, env=env) for words in (("watch",), ("wait", "-w", "200000d")))
        self.assertIn("no time to live", watcher.stdout.readline())
        self.assertIn("waiting for", waiter.stderr.readline())
        impatient = self.begin("wait", "-w", "2s", self.name, env=env)
        self.assertIn("waiting for", impatient.stderr.readline())
        server.process.kill()
        server.process.wait()
        for process in (watcher, waiter):
            self.assertIn("it may restart", process.stderr.readline())
        self.assertEqual(impatient.wait(support.PATIENCE), 69)
        server.restart()
        self.assertEqual(waiter.wait(support.PATIENCE), 0)
        self.assertIn("free", watcher.stdout.readline())

    def test_messages_that_never_come(self):
        """Looking alone is no answer: said once, tried ever less often, and given up."""
        def cut(data):
            if b"subscribe" in data:
                raise OSError
            return data

        def cut_late(data):
            if b"subscribe" in data:
                time.sleep(0.7)  # longer than one look
            return cut(data)
        self.server.cli("SET", self.name, "01234567-0123-0123-0123-0123456789ab:7")
        proxy = Proxy(self.server, self.folder, cut)
        self.addCleanup(proxy.stop)
        (self.folder / "late").mkdir()
        late = Proxy(self.server, self.folder / "late", cut_late)
        self.addCleanup(late.stop)
        full = Server()
        self.addCleanup(full.stop)
        full.cli("SET", self.name, "01234567-0123-0123-0123-0123456789ab:7")
        looking = [self.begin(word, self.name, env={"LATCHKEY_URI": server.uri})
                   for word, server in (("wait", full), ("watch", proxy), ("wait", proxy), ("watch", late), ("wait", late))]
        self.assertIn("waiting for", looking[0].stderr.readline())
        subprocess.run(["redis-cli", "-s", full.socket], input="CONFIG SET maxclients 1\nCLIENT KILL TYPE pubsub\n",
                       text=True, check=True, stdout=subprocess.DEVNULL)
        for process in looking:
            self.assertEqual(process.wait(2 * support.PATIENCE), 69)
            lines = process.stderr.read().splitlines()
            told = [line for line in lines if ": waiting for " not in line]
            self.assertEqual([line.endswith("; it may restart") for line in told], [True, False], lines)
        self.assertLess(len(proxy.open), 2 * 4 * 25)  # a round is two connections with two ends each

    def test_what_never_answered_does_not_restart(self):
        """Such as a server of another protocol."""
        def answer(listener):
            with contextlib.suppress(OSError):
                while True:
                    near, _ = listener.accept()
                    near.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    near.close()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            threading.Thread(target=answer, args=(listener,), daemon=True).start()
            env = {"LATCHKEY_URI": f"redis://127.0.0.1:{listener.getsockname()[1]}"}
            for word in ("watch", "wait"):
                made = self.latchkey(word, self.name, env=env)
                self.assertEqual((made.returncode, len(made.stderr.splitlines())), (69, 1), made.stderr)

    def test_a_replica(self):
        """It may show what is over, or not show yet what is there."""
        primary = Server("--bind", "127.0.0.1", "--port", free_port())
        self.addCleanup(primary.stop)
        replica = Server("--replicaof", "127.0.0.1", primary.cli("CONFIG", "GET", "port").split()[1])
        self.addCleanup(replica.stop)
        self.assertTrue(wait_until(lambda: "master_link_status:up" in replica.cli("INFO", "replication")))
        for server, told in ((primary, 0), (replica, 1)):
            for words in (("status", self.name), ("wait", self.name), ("list",)):
                made = self.latchkey(*words, env={"LATCHKEY_URI": server.uri})
                self.assertEqual(made.stderr.count(" is a replica"), told, made.stderr)
            watching = self.begin("watch", self.name, env={"LATCHKEY_URI": server.uri}, stderr=subprocess.STDOUT)
            self.assertEqual(" is a replica" in watching.stdout.readline(), bool(told))
        replica.cli("ACL", "SETUSER", "default", "-role")
        made = self.latchkey("status", self.name, env={"LATCHKEY_URI": replica.uri})
        self.assertEqual((made.returncode, made.stderr), (1, ""))

    def test_no_answer(self):
        server = Server()
        self.addCleanup(server.stop)
        server.pause()
        made = self.latchkey("status", self.name, env={"LATCHKEY_URI": server.uri})
        self.assertEqual(made.returncode, 69)
        self.assertIn("no answer in 5 s", made.stderr)

    def test_bench_where_writes_are_refused(self):
        server = Server("--maxmemory", "1")
        self.addCleanup(server.stop)
        made = self.latchkey("bench", "--duration", "200ms", env={"LATCHKEY_URI": server.uri})
        self.assertEqual(made.returncode, 69)
        self.assertIn("OOM", made.stderr)

    def test_bench(self):
        made = self.latchkey("--json", "bench", "--duration", "300ms", "--threads", "3")
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        seen = json.loads(made.stdout)
        self.assertGreater(seen["pairs"], 3)
        self.assertGreater(seen["pairs_per_s"], seen["pairs"])
        self.assertTrue(0 < seen["p50_us"] <= seen["p99_us"] <= 300_000 * 4, seen)
        self.assertEqual(self.server.cli("DBSIZE"), "0")
        made = self.latchkey("bench", "--duration=0.1")
        self.assertRegex(made.stdout, r"^\d+ pairs/s  p50 \d+ us  p99 \d+ us\n$")
        self.assertEqual(self.latchkey("bench", env={"LATCHKEY_URI": "unix:///no/such/socket"}).returncode, 69)

    def test_failures(self):
        server = Server("--requirepass", "geheim")
        self.addCleanup(server.stop)
        server.cli("-a", "geheim", "ACL", "SETUSER", "user", "on", ">w@rd", "~*", "&*", "+@all", "-scan")
        uri = server.uri
        for words in (("list",), ("wait", self.name)):
            def code(**env):
                made = self.latchkey(*words, env={"LATCHKEY_URI": uri, **env})
                self.assertNotIn("geheim", made.stderr)
                return made.returncode
            self.assertEqual(code(), 77)
            self.assertEqual(code(LATCHKEY_PASSWORD="wrong"), 77)
            self.assertEqual(code(LATCHKEY_PASSWORD="geheim"), 0)
            self.assertEqual(code(LATCHKEY_USERNAME="user", LATCHKEY_PASSWORD="w@rd"), 77 if words[0] == "list" else 0)
            self.assertEqual(code(LATCHKEY_URI="unix:///no/such/socket"), 69)
            self.assertEqual(code(LATCHKEY_URI="redis://127.0.0.1:1"), 69)
            self.assertEqual(code(LATCHKEY_URI="nonsense"), 78)
            self.assertEqual(code(LATCHKEY_URI="embedded:"), 78)
            self.assertEqual(code(LATCHKEY_URI="EMBEDDED:"), 78)

    def test_a_password_that_the_server_repeats(self):
        """It does not know AUTH, and says with which words it came: changed, or cut."""
        server = Server("--rename-command", "AUTH", "")
        self.addCleanup(server.stop)
        for password in ("0123456789" * 15, "geheim-vorne\ngeheim-hinten", "geheim'mit\tallem"):
            for words in (("status", self.name), ("wait", self.name), ("watch", self.name), ("list",), ("doctor",)):
                for user in ("", "somebody"):
                    env = {"LATCHKEY_URI": server.uri, "LATCHKEY_PASSWORD": password, "LATCHKEY_USERNAME": user}
                    made = self.latchkey(*words, env=env)
                    said = made.stdout + made.stderr
                    self.assertIn("unknown command 'AUTH'", said)
                    for start in range(len(password) - 7):
                        self.assertNotIn(password[start:start + 8], said)
                    self.assertNotIn("geheim", said)

    def test_parts_of_the_uri(self):
        """Database, user and password, percent signs decoded."""
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = found.getsockname()[1]
        server = Server("--requirepass", "geheim", "--bind", "127.0.0.1", "--port", str(port))
        self.addCleanup(server.stop)
        server.cli("-a", "geheim", "ACL", "SETUSER", "us@r", "on", ">w:rd/", "~*", "&*", "+@all")
        uri = f"redis://us%40r:w%3Ard%2f@127.0.0.1:{port}/3"
        made = self.latchkey("run", "tcp", support.tool, "list", env={"LATCHKEY_URI": uri})
        self.assertEqual((made.returncode, made.stdout[:4]), (0, "tcp "), made.stderr)
        self.assertEqual(self.latchkey("run", self.name, support.tool, "list", "--uri", server.uri + "?db=3",
                                       env={"LATCHKEY_URI": server.uri + "?db=3", "LATCHKEY_PASSWORD": "geheim"})
                         .stdout.split()[0], self.name)
        self.assertEqual(self.latchkey("list", env={"LATCHKEY_URI": server.uri, "LATCHKEY_PASSWORD": "geheim"}).stdout,
                         "")



class BehindSentinels(Case):
    """What looks at one server looks at the master that a sentinel names."""

    def setUp(self):
        super().setUp()
        port, sentinel = free_port(), free_port()
        self.master = Server("--port", port, "--bind", "127.0.0.1", "--requirepass", "p:a@s/s")
        self.addCleanup(self.master.stop)
        file = self.folder / "sentinel.conf"
        file.write_text(f"port {sentinel}\nbind 127.0.0.1\nsentinel monitor orders 127.0.0.1 {port} 1\n"
                        "sentinel auth-pass orders p:a@s/s\nrequirepass s3\n", encoding="utf-8")
        process = subprocess.Popen(["redis-server", file, "--sentinel"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, cwd=self.folder)
        self.addCleanup(support.kill_group_of, process)
        wait_until(lambda: reached(sentinel))
        nobody = free_port()
        self.uri = (f"redis-sentinel://:p%3Aa%40s%2Fs@127.0.0.1:{nobody},127.0.0.1:{sentinel}/orders/3"
                    "?sentinel_password=s3")

    def test_looks(self):
        env = {"LATCHKEY_URI": self.uri}
        holder = self.begin("run", self.name, "--", "sh", "-c", "echo began; read -r line", env=env, stdin=subprocess.PIPE)
        self.addCleanup(holder.stdin.close)
        self.assertEqual(holder.stdout.readline(), "began\n")
        made = self.latchkey("status", self.name, env=env)
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        self.assertIn(f"{self.name} is held (lock)", made.stdout)
        self.assertIn(self.name, self.latchkey("list", env=env).stdout)
        self.assertEqual(self.latchkey("wait", self.name, "-w0", env=env).returncode, 75)
        made = self.latchkey("--json", "doctor", env=env)
        rows = {row["id"]: row["verdict"] for row in map(json.loads, made.stdout.splitlines())}
        self.assertEqual((rows["reach"], rows["role"], rows["rights.lock"]), ("ok", "ok", "ok"), made.stdout)

    def test_nobody_knows_it(self):
        made = self.latchkey("status", self.name, env={"LATCHKEY_URI": self.uri.replace("orders", "others")})
        self.assertEqual((made.returncode, made.stdout), (69, ""))
        self.assertRegex(made.stderr, r"knows no master others\n$")


if __name__ == "__main__":
    support.main()
