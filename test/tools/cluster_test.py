"""Names of a cluster: each subcommand that looks at one goes to the node that has it."""

import json
import pathlib
import time
import types

import support
from support import Case, Server, free_port, wait_until


class Nodes(Case):
    """Two masters with half of the slots each."""

    @classmethod
    def setUpClass(cls):
        cls.ports = []
        while len(set(cls.ports)) < 2:
            cls.ports = [free_port(below=55_000) for _ in range(2)]  # they listen ten thousand above it, too
        cls.nodes = [Server("--bind", "127.0.0.1", "--port", port, "--cluster-enabled", "yes") for port in cls.ports]
        for node in cls.nodes:
            cls.addClassCleanup(node.stop)
        for node, (first, last) in zip(cls.nodes, ((0, 8191), (8192, 16383))):
            node.cli("CLUSTER", "ADDSLOTSRANGE", first, last)
        cls.nodes[1].cli("CLUSTER", "SET-CONFIG-EPOCH", 2)
        cls.nodes[0].cli("CLUSTER", "MEET", "127.0.0.1", cls.ports[1])
        cls.whole()
        cls.server = types.SimpleNamespace(uri="redis-cluster://" + ",".join(f"127.0.0.1:{port}" for port in cls.ports))

    @classmethod
    def whole(cls):
        if not wait_until(lambda: all("cluster_state:ok" in node.cli("CLUSTER", "INFO") for node in cls.nodes)):
            raise RuntimeError("the nodes do not meet")

    def name_on(self, node):
        """A name in a slot of this node."""
        for number in range(100):
            name = f"{self.name}:{number}"
            if (int(self.nodes[0].cli("CLUSTER", "KEYSLOT", name)) >= 8192) == (node == 1):
                return name
        raise AssertionError("no such name")


class Cluster(Nodes):
    def listeners(self, node, name):
        return int(self.nodes[node].cli("PUBSUB", "SHARDNUMSUB", f"redisson_lock__channel:{{{name}}}").split()[-1])

    def test_on_each_node(self):
        for node in range(2):
            name = self.name_on(node)
            holder = self.hold(name)
            self.assertEqual(self.nodes[node].cli("EXISTS", name), "1")
            waiting = self.begin("wait", name)
            watching = self.begin("watch", name)
            self.assertTrue(wait_until(lambda: self.listeners(node, name) == 2))
            seen = json.loads(self.latchkey("--json", "status", name).stdout)
            self.assertEqual((seen["held"], len(seen["holders"])), (True, 1))
            self.assertEqual(seen["listeners"], 2)
            self.assertIn(name, watching.stdout.readline())
            holder.stdin.close()
            self.assertEqual(waiting.wait(support.PATIENCE), 0)
            self.assertEqual(watching.stdout.readline(), f"{name}  free\n")
            self.assertEqual(self.latchkey("status", name).returncode, 1)

    def test_by_hand(self):
        """Acquired, extended and released from a shell."""
        for node in range(2):
            name = self.name_on(node)
            made = self.latchkey("acquire", "--lease", "30s", name)
            self.assertEqual((made.returncode, made.stderr), (0, ""))
            token = made.stdout.strip()
            self.assertEqual(self.latchkey("extend", token, "--lease", "60s").returncode, 0)
            self.assertGreater(int(self.nodes[node].cli("PTTL", name)), 30_000)
            self.assertEqual(self.latchkey("held", token).returncode, 0)
            self.assertEqual(self.latchkey("acquire", "--lease", "30s", "-n", name).returncode, 75)
            self.assertEqual(self.latchkey("release", token).returncode, 0)
            self.assertEqual(self.nodes[node].cli("EXISTS", name), "0")

    def test_a_node_that_stands_still(self):
        """Whoever does not wait for others does not wait long for the server of that name either."""
        for node in range(2):
            name = self.name_on(node)  # which the first node says
            self.nodes[node].pause()
            self.addCleanup(self.nodes[node].resume)
            permits = ("run", "-n", "--kind", "semaphore", "--permits", "2", name, "true")
            for words in (("run", "-n", name, "true"), permits, ("acquire", "-n", "--lease", "1m", name)):
                began = time.monotonic()
                made = self.latchkey(*words)
                self.assertEqual(made.returncode, 69, made.stderr)
                self.assertLess(time.monotonic() - began, 5 if words[0] == "acquire" else 10)
                self.assertNotIn("somebody", made.stderr)
            self.nodes[node].resume()
            self.whole()

    def test_a_wait_past_a_node_that_stands_still(self):
        """It is asked first, once, and not for longer than a short wait allows."""
        self.addCleanup(self.whole)
        name = self.name_on(1)
        self.nodes[0].pause()
        self.addCleanup(self.nodes[0].resume)
        began = time.monotonic()
        made = self.latchkey("wait", "-w", "100ms", name)
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        self.assertLess(time.monotonic() - began, 5)

    def test_forced(self):
        for node in range(2):
            name = self.name_on(node)
            holder = self.hold(name)
            self.assertEqual(self.latchkey("force-unlock", "--any", "--yes", name).returncode, 0)
            self.assertEqual(self.nodes[node].cli("EXISTS", name), "0")
            holder.stdin.close()

    def test_clients_without_sharded_channels(self):
        """What they publish is heard, too."""
        name = self.name_on(1)
        holder = self.hold(name)
        waiting = self.begin("wait", name)
        channel = f"redisson_lock__channel:{{{name}}}"
        self.assertTrue(wait_until(lambda: self.nodes[1].cli("PUBLISH", channel, 0) == "1"))
        holder.stdin.close()
        self.assertEqual(waiting.wait(support.PATIENCE), 0)

    def test_list(self):
        names = [self.name_on(0), self.name_on(1)]
        holders = [self.hold(name) for name in names]
        shown = self.latchkey("list", f"{self.name}:*")
        self.assertEqual(shown.returncode, 0, shown)
        self.assertEqual(sorted(line.split()[0] for line in shown.stdout.splitlines()), sorted(names))
        self.assertEqual(len(self.latchkey("list", "--limit", 1, f"{self.name}:*").stdout.splitlines()), 1)
        for holder in holders:
            holder.stdin.close()

    def doctor(self, *words, **env):
        made = self.latchkey("--json", "doctor", *words, env=env)
        rows = [json.loads(line) for line in made.stdout.splitlines()]
        return made.returncode, {(row["node"], row["id"]): row for row in rows}

    def test_doctor(self):
        """Every row once for each node."""
        code, rows = self.doctor()
        self.assertEqual(code, 0, rows)
        at = {f"127.0.0.1:{port}" for port in self.ports}
        self.assertEqual({node for node, _ in rows}, at)
        ids = {name for _, name in rows}
        self.assertEqual(set(rows), {(node, name) for node in at for name in ids})
        self.assertLessEqual({"reach", "topology", "rights.lock", "pubsub", "kill"}, ids)
        bad = {place: row for place, row in rows.items() if row["verdict"] not in ("ok", "skip")}
        self.assertEqual({name for _, name in bad}, {"persistence"})
        self.assertEqual([node.cli("DBSIZE") for node in self.nodes], ["0", "0"])
        self.assertIn(f"ok topology at 127.0.0.1:{self.ports[0]}: ", self.latchkey("doctor").stdout)

    def test_doctor_of_a_restricted_user(self):
        """Refused on one node alone, and said so of that."""
        for node in self.nodes:
            node.cli("ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all")
        self.nodes[1].cli("ACL", "SETUSER", "app", "-spublish")
        user = {"LATCHKEY_USERNAME": "app", "LATCHKEY_PASSWORD": "secret"}
        _, rows = self.doctor(**user)
        self.assertEqual(rows[f"127.0.0.1:{self.ports[0]}", "pubsub"]["verdict"], "ok")
        row = rows[f"127.0.0.1:{self.ports[1]}", "pubsub"]
        self.assertEqual(row["verdict"], "warn", row)
        self.assertIn("+spublish", row["remedy"])
        admin = pathlib.Path(self.folder) / "admin"
        admin.write_text(self.server.uri, encoding="utf-8")
        _, rows = self.doctor("--user", "app", "--admin-uri-file", admin, **user)
        self.assertEqual(rows[f"127.0.0.1:{self.ports[0]}", "rights.lock"]["verdict"], "ok")
        self.assertIn("spublish", rows[f"127.0.0.1:{self.ports[1]}", "rights.lock"]["text"])
        admin.write_text(f"redis://127.0.0.1:{self.ports[0]}", encoding="utf-8")
        self.assertEqual(self.latchkey("doctor", "--user", "app", "--admin-uri-file", admin, env=user).returncode, 78)

    def test_doctor_of_a_user_who_may_not_ask_for_the_nodes(self):
        for node in self.nodes:
            node.cli("ACL", "SETUSER", "narrow", "on", ">secret", "~*", "&*", "+@all", "-cluster|slots")
        for command in ("doctor", "list"):
            made = self.latchkey(command, env={"LATCHKEY_USERNAME": "narrow", "LATCHKEY_PASSWORD": "secret"})
            self.assertIn("+cluster|slots", made.stdout + made.stderr)
            self.assertEqual(made.returncode, {"doctor": 1, "list": 77}[command])

    def test_doctor_of_a_prefix_that_is_one_slot(self):
        made = self.latchkey("doctor", "--scratch", "{orders}")
        self.assertEqual(made.returncode, 78, made)
        self.assertIn("it must not have braces", made.stderr)

    def test_doctor_where_a_node_does_not_answer(self):
        """Its row names it, and the other one is looked at all the same."""
        self.addCleanup(self.whole)
        self.nodes[0].pause()
        self.addCleanup(self.nodes[0].resume)
        made = self.latchkey("--json", "doctor", "--lease", "1s",
                             env={"LATCHKEY_URI": f"redis-cluster://127.0.0.1:{self.ports[1]}"}, limit=60)
        rows = [json.loads(line) for line in made.stdout.splitlines()]
        self.assertEqual([(row["verdict"], row["id"]) for row in rows if row["node"].endswith(str(self.ports[0]))],
                         [("FAIL", "reach")])
        self.assertIn(("ok", "kill"), [(row["verdict"], row["id"]) for row in rows])

    def test_doctor_of_a_cluster_without_some_slots(self):
        self.nodes[1].cli("CLUSTER", "DELSLOTSRANGE", 16000, 16383)
        self.addCleanup(self.whole)
        self.addCleanup(self.nodes[1].cli, "CLUSTER", "ADDSLOTSRANGE", 16000, 16383)
        self.assertTrue(wait_until(lambda: "cluster_state:fail" in self.nodes[1].cli("CLUSTER", "INFO")))
        code, rows = self.doctor()
        self.assertEqual(code, 1)
        self.assertEqual(rows[f"127.0.0.1:{self.ports[1]}", "topology"]["verdict"], "FAIL")


class Failover(Nodes):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        replica = Server("--bind", "127.0.0.1", "--port", free_port(below=55_000), "--cluster-enabled", "yes")
        cls.addClassCleanup(replica.stop)
        cls.nodes.append(replica)
        replica.cli("CLUSTER", "MEET", "127.0.0.1", cls.ports[1])
        cls.whole()
        primary = cls.nodes[1].cli("CLUSTER", "MYID")
        wait_until(lambda: replica.cli("CLUSTER", "REPLICATE", primary) == "OK")
        if not wait_until(lambda: "state=online" in cls.nodes[1].cli("INFO", "replication")):
            raise RuntimeError("the replica does not follow")

    def test_looks_on(self):
        """At the node that has the slot by then."""
        name = self.name_on(1)
        holder = "01234567-0123-0123-0123-0123456789ab:7"
        self.nodes[1].cli("HSET", name, holder, 1)
        watching, waiting = self.begin("watch", name), self.begin("wait", name)
        self.assertIn(holder, watching.stdout.readline())
        self.assertIn("waiting for", waiting.stderr.readline())
        self.assertEqual(self.nodes[2].cli("CLUSTER", "FAILOVER"), "OK")
        for process in (watching, waiting):
            self.assertRegex(process.stderr.readline(), "MOVED .*; it is looked for anew$")
        self.assertTrue(wait_until(lambda: self.nodes[2].cli("DEL", name) == "1"))
        self.assertEqual(watching.stdout.readline(), f"{name}  free\n")
        self.assertEqual(waiting.wait(support.PATIENCE), 0)


if __name__ == "__main__":
    support.main()
