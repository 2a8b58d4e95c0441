"""What the tests of the program `latchkey` share: private servers, the program itself, and a look at processes.

Each test file is a program: FILE --tool PATH [unittest's own words]."""

import contextlib
import fcntl
import os
import pathlib
import pty
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import unittest

PATIENCE = 20  # seconds, for what should take milliseconds

# With a job in the background, a daemon in a session of its own that does not listen to TERM, and a foreground that
# does not either.
STUBBORN = """
trap "" TERM
sleep 300 &
(setsid sh -c 'trap "" TERM; while :; do sleep 1; done' &)
echo began
while :; do sleep 1; done
"""

tool = None


def main():
    global tool
    arguments = sys.argv[1:]
    tool = arguments[arguments.index("--tool") + 1]
    rest = [word for word in arguments if word not in ("--tool", tool)]
    unittest.main(argv=[sys.argv[0], "-v", *rest], module="__main__")


def wait_until(true, limit=PATIENCE, pause=0.005):
    """What `true` gave in the end."""
    deadline = time.monotonic() + limit
    while not (result := true()) and time.monotonic() < deadline:
        time.sleep(pause)
    return result


def free_port(below=65_536):
    while True:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            if (port := taken.getsockname()[1]) < below:
                return port


class Server:
    """A redis-server on a Unix socket in a folder of its own."""

    def __init__(self, *settings):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="latchkey-tools-"))
        self.socket = self.folder / "redis.sock"
        self.uri = f"unix://{self.socket}"
        self.words = ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--dir", self.folder,
                      "--logfile", self.folder / "log", *settings]
        self.restart()

    def restart(self):
        self.process = subprocess.Popen([str(word) for word in self.words], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not wait_until(lambda: self.cli("PING", check=False) in ("PONG", "NOAUTH Authentication required.")):
            raise RuntimeError("redis-server does not answer")

    def cli(self, *words, check=True):
        made = subprocess.run(["redis-cli", "-s", str(self.socket), *map(str, words)], capture_output=True, text=True,
                              check=check)
        return made.stdout.strip()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Proxy:
    """Between the program and a server: what comes back goes through `change`, which may take its time."""

    def __init__(self, server, folder, change):
        self.path = folder / "proxy.sock"
        self.uri = f"unix://{self.path}"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen()
        self.open = [self.listener]
        threading.Thread(target=self.accept, args=(server, change), daemon=True).start()

    def accept(self, server, change):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(str(server.socket))
            self.open += [near, far]
            threading.Thread(target=self.pump, args=(near, far, lambda data: data), daemon=True).start()
            threading.Thread(target=self.pump, args=(far, near, change), daemon=True).start()

    @staticmethod
    def pump(source, target, change):
        try:
            while data := source.recv(65536):
                target.sendall(change(data))
        except OSError:
            pass
        finally:
            for end in (source, target):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)  # the other thread may be reading
                end.close()

    def stop(self):
        for end in self.open:
            end.close()


def state_of(pid):
    with contextlib.suppress(OSError, IndexError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="latin-1").rsplit(")", 1)[1].split()[0]
    return "-"


def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="latin-1").rsplit(")", 1)[1].split()[1])


def alive(pid):
    return state_of(pid) not in "-ZX"


def processes_of(name):
    """Living processes that belong to the command under this lock: the keeper gave them the variable."""
    return processes_with(f"LATCHKEY_LOCK={name}")


def processes_with(variable):
    """Living processes in whose environment this stands."""
    mark = f"\0{variable}\0".encode()
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if mark in b"\0" + pathlib.Path(f"/proc/{pid}/environ").read_bytes() and alive(pid):
                found.append(int(pid))
    return found


def children_of(pid):
    with contextlib.suppress(OSError):
        return [int(child) for path in pathlib.Path(f"/proc/{pid}/task").iterdir()
                for child in (path / "children").read_text().split()]
    return []


def on_terminal(environment, *words, columns):
    """What the program writes to a terminal of so many columns."""
    ours, device = pty.openpty()
    with open(ours, "rb", buffering=0) as ours, open(device, "wb", buffering=0) as device:
        fcntl.ioctl(device, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        made = subprocess.run([tool, *words], stdin=subprocess.DEVNULL, stdout=device, stderr=subprocess.STDOUT,
                              env=environment, timeout=PATIENCE, check=False)
        os.set_blocking(ours.fileno(), False)
        return made.returncode, (ours.read() or b"").decode().replace("\r", "")


def kill_group_of(process):
    """Whatever a failed test has left."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    process.wait()


class Case(unittest.TestCase):
    """A test with a server and a folder."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.addClassCleanup(cls.server.stop)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="latchkey-tools-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.name = f"{self.id().rsplit('.', 1)[1]}:{os.getpid()}"

    def environment(self, **more):
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith("LATCHKEY_") and name != "CREDENTIALS_DIRECTORY"}
        return {**kept, "LATCHKEY_URI": self.server.uri, **more}

    def latchkey(self, *words, env=None, limit=PATIENCE, **more):
        """Runs to its end; standard output, error and exit code."""
        return subprocess.run([tool, *map(str, words)], capture_output=True, text=True, timeout=limit,
                              env=self.environment(**(env or {})), **{"stdin": subprocess.DEVNULL, **more})

    def begin(self, *words, env=None, **more):
        """Started, and killed with the test."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen([tool, *map(str, words)], text=True, env=self.environment(**(env or {})),
                                   **{**streams, **more})
        for stream in filter(None, (process.stdout, process.stderr)):
            self.addCleanup(stream.close)
        self.addCleanup(kill_group_of, process)
        return process

    def begin_run(self, *words, until="began", **more):
        """`latchkey run`, whose command has printed a line."""
        process = self.begin("run", *words, **more)
        self.assertEqual(process.stdout.readline().strip(), until)
        return process

    def hold(self, name, *options):
        """Another `run` that holds until its standard input is closed."""
        process = self.begin("run", *options, name, "--", "sh", "-c", "echo began; read -r line; true",
                             stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), "began\n")
        self.addCleanup(process.stdin.close)
        return process

    def is_free(self, name):
        return self.server.cli("EXISTS", name) == "0"

    def assert_dead(self, name, limit):
        """No process of the command lives after so many seconds."""
        wait_until(lambda: not processes_of(name), limit)
        self.assertEqual([(pid, state_of(pid)) for pid in processes_of(name)], [])
