"""install_test.py ROOT: what scripts/lib/install.sh writes for the time of an installation goes with it, also when the
script is killed."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

SCRIPT = """
source scripts/lib/install.sh
policy=$1
without_services bash -c 'echo begun; read -r _ </dev/null; exec sleep 60'
"""


def start(root, policy):
    process = subprocess.Popen(["bash", "-c", SCRIPT, "install", policy], cwd=root, stdout=subprocess.PIPE, text=True,
                               start_new_session=True)
    assert process.stdout.readline() == "begun\n"
    assert os.access(policy, os.X_OK), "no policy during the installation"
    assert subprocess.run([policy]).returncode == 101
    return process


def end(process):
    """The child that sleeps on."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def gone(policy):
    deadline = time.monotonic() + 15
    while os.path.exists(policy) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not os.path.exists(policy)


def sweep(root, policy):
    subprocess.run(["bash", "-c", 'source scripts/lib/install.sh; policy=$1; sweep_policy', "sweep", policy], cwd=root,
                   check=True)


def main():
    root = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        policy = str(pathlib.Path(folder) / "policy-rc.d")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            process = start(root, policy)
            os.kill(process.pid, number)
            left = not gone(policy)
            if not left:
                process.wait(15)
            end(process)
            assert not left, f"{number!r} left the policy behind"
            assert process.returncode in (-number, 128 + number), process.returncode
        # Nothing can be done at once after SIGKILL: the next run does it, and leaves that of a living one alone.
        process = start(root, policy)
        sweep(root, policy)
        assert os.path.exists(policy), "the policy of a living script was swept"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert os.path.exists(policy)
        sweep(root, policy)
        assert not os.path.exists(policy), "the policy of a killed script was not swept"
        end(process)
        # The administrator's own stays, and is used.
        pathlib.Path(policy).write_text("#!/bin/sh\nexit 101\n", encoding="utf-8")
        os.chmod(policy, 0o755)
        sweep(root, policy)
        process = start(root, policy)
        os.kill(process.pid, signal.SIGTERM)
        process.wait()
        end(process)
        assert os.path.exists(policy), "somebody else's policy was removed"
    print("six installations left nothing behind")


main()
