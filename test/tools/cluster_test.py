"""Names of a cluster: each subcommand that looks at one goes to the node that has it."""

import json
import types

import support
from support import Case, Server, free_port, wait_until


class Cluster(Case):
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
        if not wait_until(lambda: all("cluster_state:ok" in node.cli("CLUSTER", "INFO") for node in cls.nodes)):
            raise RuntimeError("the nodes do not meet")
        cls.server = types.SimpleNamespace(uri="redis-cluster://" + ",".join(f"127.0.0.1:{port}" for port in cls.ports))

    def name_on(self, node):
        """A name in a slot of this node."""
        for number in range(100):
            name = f"{self.name}:{number}"
            if (int(self.nodes[0].cli("CLUSTER", "KEYSLOT", name)) >= 8192) == (node == 1):
                return name
        raise AssertionError("no such name")

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
            self.assertGreaterEqual(seen["listeners"], 2)  # of several channels: its kind is not known before
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

    def test_what_looks_at_one_server(self):
        for command in ("list", "doctor"):
            made = self.latchkey(command)
            self.assertEqual(made.returncode, 78, made)
            self.assertIn("name one, as redis://HOST:PORT", made.stderr)
        name = self.name_on(1)
        holder = self.hold(name)
        made = self.latchkey("list", env={"LATCHKEY_URI": f"redis://127.0.0.1:{self.ports[1]}"})
        self.assertIn(name, made.stdout)
        holder.stdin.close()


if __name__ == "__main__":
    support.main()
