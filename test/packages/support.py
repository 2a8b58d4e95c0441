"""What the tests of packages share: options, folders, and commands whose output is shown.

Everything is made in BUILD/test/packages. Its folder `made` is filled once, by debian_build_test.py.
"""

import argparse
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent


def options(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", required=True)
    return parser.parse_args()


def place(build):
    return build / "test/packages"


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def clean_environment(**more):
    return {**{name: value for name, value in os.environ.items() if name not in ("DESTDIR", "PKG_CONFIG_PATH")},
            "LC_ALL": "C.UTF-8", **more}


def attempt(*command, cwd=None, env=None, seconds=600):
    """(exit code, what it said). The command is shown, and its output if it failed."""
    words = [str(word) for word in command]
    print("$", *words, flush=True)
    done = subprocess.run(words, cwd=cwd, env=env or clean_environment(), timeout=seconds, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode, done.stdout


def run(*command, **settings):
    code, said = attempt(*command, **settings)
    if code:
        sys.exit(f"{said}\n{command[0]} failed with {code}")
    return said


def refused(words, *command, **settings):
    """The command must fail, and say these words."""
    code, said = attempt(*command, **settings)
    flat = re.sub(r"\s+", " ", said)
    expect(code != 0, f"this should have been refused:\n{said}")
    for word in words:
        expect(word in flat, f"refused without the words {word!r}:\n{said}")
    return said


def in_long_form():
    """What takes long has a short form, and is done whole with `scripts/test --long`."""
    return "LATCHKEY_LONG" in os.environ


def expect(condition, text):
    if not condition:
        sys.exit(text)


def version():
    text = (SOURCE / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(latchkey VERSION ([0-9.]+)", text).group(1)


def configure(source, folder, compiler, *settings):
    return ["cmake", "-S", source, "-B", folder, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={compiler}", *settings]


def made(build):
    """What debian_build_test.py has built: (its build tree, the prefix it is installed in)."""
    folder = place(build) / "made"
    expect((folder / "prefix").is_dir(), "packages.P4_debian_build has not left its prefix: run it first")
    return folder / "tree", folder / "prefix"


def python_tools(build):
    """The folder of programs of requirements.txt: a venv that is made once, and again when the file changes."""
    wanted = (HERE / "requirements.txt").read_text(encoding="utf-8")
    folder = place(build) / "venv"
    mark = folder / "made-of.txt"
    place(build).mkdir(parents=True, exist_ok=True)
    with open(place(build) / "venv.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two tests want it at once
        if not mark.exists() or mark.read_text(encoding="utf-8") != wanted:
            make_venv(folder, wanted, mark)
    return folder / "bin"


def make_venv(folder, wanted, mark):
    fresh(folder)
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "-r", HERE / "requirements.txt")
    mark.write_text(wanted, encoding="utf-8")


def copy_of_tree(folder):
    """What git has or would add, as it stands now."""
    files = folder.with_suffix(".files")
    listed = run("git", "-C", SOURCE, "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    files.write_text("".join(f"{name}\n" for name in listed if (SOURCE / name).exists()), encoding="utf-8")
    run("tar", "cf", folder.with_suffix(".tar"), "-C", SOURCE, "-T", files)
    folder.mkdir(parents=True)
    run("tar", "xf", folder.with_suffix(".tar"), "-C", folder)
    return folder


def only(paths, what):
    found = sorted(paths)
    expect(len(found) == 1, f"expected one {what}, found {[str(path) for path in found]}")
    return found[0]
