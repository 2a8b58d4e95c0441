"""C5: rediss://, --cacert, --cert and --key, and their variables."""

import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading

import support
from support import Case, Server, free_port


class Certificates:
    """An authority, and what it has signed, in a folder."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.openssl("req", "-x509", *self.new_key("ca"), "-out", "ca.crt", "-days", "2", "-subj", "/CN=authority")
        for name in ("server", "client"):
            self.openssl("req", *self.new_key(name), "-out", f"{name}.csr", "-subj", f"/CN={name}", "-addext",
                         "subjectAltName=IP:127.0.0.1,DNS:localhost")
            self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
                         "-copy_extensions", "copy", "-days", "2", "-out", f"{name}.crt")

    @staticmethod
    def new_key(name):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", f"{name}.key"]

    def openssl(self, *words):
        subprocess.run(["openssl", *words], cwd=self.folder, check=True, capture_output=True)

    def __getitem__(self, name):
        return str(self.folder / name)


class Tls(Case):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="latchkey-tools-")
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        cls.files = Certificates(folder)
        port = free_port()
        cls.server = Server("--tls-port", port, "--tls-cert-file", cls.files["server.crt"], "--tls-key-file",
                            cls.files["server.key"], "--tls-ca-cert-file", cls.files["ca.crt"])
        cls.addClassCleanup(cls.server.stop)
        cls.place = f"127.0.0.1:{port}"
        cls.server.uri = f"rediss://{cls.place}"
        cls.variables = {"LATCHKEY_CACERT": cls.files["ca.crt"], "LATCHKEY_CERT": cls.files["client.crt"],
                         "LATCHKEY_KEY": cls.files["client.key"]}
        cls.options = ["--cacert", cls.files["ca.crt"], "--cert", cls.files["client.crt"], "--key", cls.files["client.key"]]

    def test_C5_run_and_look(self):
        """Every subcommand that asks the server, by options and by variables."""
        for words, env in (([], self.variables), (self.options, {}),
                           (self.options, {name: "/nothing" for name in self.variables})):
            made = self.latchkey(*words, "run", self.name, "--", support.tool, *words, "status", self.name, env=env)
            self.assertEqual((made.returncode, made.stderr), (0, ""))
            self.assertIn(self.name, made.stdout)
            self.assertEqual(self.latchkey(*words, "status", self.name, env=env).returncode, 1)
        process = self.begin("run", self.name, "--", "sh", "-c", "echo began; read -r line", env=self.variables,
                             stdin=subprocess.PIPE)
        self.addCleanup(process.stdin.close)
        self.assertEqual(process.stdout.readline(), "began\n")
        made = self.latchkey("list", env=self.variables)
        self.assertIn(self.name, made.stdout)
        self.assertEqual(self.latchkey("wait", "--wait", "0.2s", self.name, env=self.variables).returncode, 75)
        waiting = self.begin("wait", self.name, env=self.variables)
        watching = self.begin("watch", self.name, env=self.variables)
        self.assertTrue(support.wait_until(lambda: self.server.cli(
            "PUBSUB", "NUMSUB", f"redisson_lock__channel:{{{self.name}}}").endswith("2")))
        process.stdin.write("\n")
        process.stdin.flush()
        self.assertEqual(waiting.wait(support.PATIENCE), 0)
        self.assertNotEqual(watching.stdout.readline(), "")

    def test_the_other_scheme(self):
        """A port for TLS that is asked without, and the other way."""
        made = self.latchkey("status", self.name, env={"LATCHKEY_URI": f"redis://{self.place}"})
        self.assertEqual(made.returncode, 69)
        self.assertIn("a port for TLS? rediss://", made.stderr)
        plain = Server("--port", port := free_port())
        self.addCleanup(plain.stop)
        made = self.latchkey("status", self.name, env={**self.variables, "LATCHKEY_URI": f"rediss://127.0.0.1:{port}"})
        self.assertEqual(made.returncode, 69)
        self.assertIn("a port without TLS? redis://", made.stderr)

    def test_a_port_that_speaks_first(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            def speak():
                near, _ = listener.accept()
                with near:
                    near.sendall(b"220 no TLS here\r\n")
                    near.recv(4096)
            speaker = threading.Thread(target=speak)
            speaker.start()
            uri = f"rediss://127.0.0.1:{listener.getsockname()[1]}"
            made = self.latchkey("status", self.name, env={**self.variables, "LATCHKEY_URI": uri})
            speaker.join()
        self.assertEqual(made.returncode, 69)
        self.assertIn("a port without TLS? redis://", made.stderr)

    def test_C5_long_answers(self):
        """More than a record of TLS can hold comes in one answer."""
        names = [f"{self.name}:{'x' * 500}:{i}" for i in range(200)]
        for name in names:
            self.server.cli("HSET", name, "0123abcd-0123-0123-0123-0123456789ab:1", "1")
        made = self.latchkey("list", env=self.variables)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual([name for name in names if name not in made.stdout], [])

    def test_C5_refusals(self):
        """By both ways to the server: the library's connections, and the program's own."""
        stranger = Certificates(self.folder)
        trusts = {"LATCHKEY_CACERT": self.files["ca.crt"]}
        alien = {**trusts, "LATCHKEY_CERT": stranger["client.crt"], "LATCHKEY_KEY": stranger["client.key"]}
        for env, code, words in (({}, 77, "certificate is refused"), (trusts, 77, "certificate required"),
                                 (alien, 77, "unknown ca"),
                                 ({**trusts, "LATCHKEY_CERT": self.files["client.crt"]}, 78, "private_key_file"),
                                 ({"LATCHKEY_CACERT": "/no/such/file"}, 78, "/no/such/file")):
            for what in (["run", self.name, "true"], ["status", self.name]):
                made = self.latchkey(*what, env=env)
                self.assertEqual(made.returncode, code, (what, made.stderr))
                self.assertIn(words, made.stderr, what)
                self.assertEqual(made.stderr.count("\n"), 1, made.stderr)
                self.assertNotIn("needed:", made.stderr, "no right is missing")
            if code == 77:
                made = self.latchkey("doctor", env=env)
                self.assertEqual(made.returncode, 1, made.stderr)
                self.assertRegex(made.stdout, rf"FAIL reach: .*{words}.*--cacert")
                self.assertNotIn("password", made.stdout)
        self.assertEqual(self.latchkey("--uri", "redis://127.0.0.1", *self.options, "status", self.name).returncode, 64)

    def test_C5_no_tls_there(self):
        """A port of plain text ends in time, as a server that cannot be reached."""
        port = free_port()
        plain = Server("--port", port)
        self.addCleanup(plain.stop)
        env = {**self.variables, "LATCHKEY_URI": f"rediss://127.0.0.1:{port}"}
        made = self.latchkey("run", "-n", self.name, "true", env=env)
        self.assertEqual(made.returncode, 69)
        self.assertIn(f"127.0.0.1:{port}: ", made.stderr)
        made = self.latchkey("status", self.name, env=env)
        self.assertEqual(made.returncode, 69, made.stderr)
        self.assertIn("by TLS: no answer in time", made.stderr)


if __name__ == "__main__":
    support.main()
