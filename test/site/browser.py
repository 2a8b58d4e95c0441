"""Chromium without a window, by its DevTools protocol: one tab, and what it complains of."""

import base64
import contextlib
import functools
import http.server
import json
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time
import urllib.request

import websocket

PATIENCE = 60  # seconds, for what takes a tenth of one
SWITCHES = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--mute-audio", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--remote-debugging-port=0",
            # Whatever a page asks for elsewhere is not there.
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "about:blank"]


class Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder):
    """The address under which a folder can be read, on this machine alone."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


class Tab:
    """One tab. Events that say that something is wrong are collected in `faults`."""

    def __init__(self, address, home):
        self.socket = websocket.create_connection(address, timeout=PATIENCE, suppress_origin=True)
        self.number = 0
        self.home = home
        self.faults = []
        self.events = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while (message := self.receive()).get("id") != self.number:
            pass
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return message["result"]

    def receive(self):
        message = json.loads(self.socket.recv())
        if "method" in message:
            self.events.append(message["method"])
            self.judge(message["method"], message["params"])
        return message

    def judge(self, event, told):
        if event == "Runtime.exceptionThrown":
            self.faults.append(f"exception: {told['exceptionDetails'].get('exception', {}).get('description', told)}")
        elif event == "Runtime.consoleAPICalled" and told["type"] in ("error", "assert"):
            self.faults.append("console: " + " ".join(str(one.get("value", one.get("description"))) for one in told["args"]))
        elif event == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.faults.append(f"log: {told['entry']['text']} {told['entry'].get('url', '')}")
        elif event == "Network.requestWillBeSent" and not told["request"]["url"].startswith((self.home, "data:", "blob:")):
            self.faults.append(f"foreign request: {told['request']['url']}")
        elif event == "Network.responseReceived" and told["response"]["status"] >= 400:
            self.faults.append(f"answered with {told['response']['status']}: {told['response']['url']}")

    def wait_for(self, event):
        deadline = time.monotonic() + PATIENCE
        while event not in self.events:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{event} does not come")
            self.receive()

    def look(self, width, dark):
        """How wide the window is, and which colours the reader prefers."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 800)
        self.ask("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"}])

    def visit(self, url):
        self.events.clear()
        self.ask("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")

    def run(self, script):
        result = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, script, what, limit=PATIENCE):
        """The first true value of a script."""
        deadline = time.monotonic() + limit
        while not (value := self.run(script)):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{what} does not come")
            time.sleep(0.02)
        return value

    def type(self, text):
        self.ask("Input.insertText", text=text)

    def picture(self, path, whole=False):
        taken = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(taken["data"]))


@contextlib.contextmanager
def tab(home):
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if not program:
        raise SystemExit("chromium is missing (Debian: chromium)")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen([program, f"--user-data-dir={folder}", *SWITCHES], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield Tab(address_of(pathlib.Path(folder), process), home)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def address_of(folder, process):
    """Of its one tab: the browser writes its port into a file."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError, IndexError, ValueError):
            port = int((folder / "DevToolsActivePort").read_text(encoding="ascii").split()[0])
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=PATIENCE) as answer:
                pages = [one for one in json.load(answer) if one["type"] == "page"]
            if pages:
                return pages[0]["webSocketDebuggerUrl"]
        time.sleep(0.05)
    raise RuntimeError(f"chromium has not started: {process.poll()}")
