"""Builds a tarball in a folder, and compares what two builds install."""

import hashlib
import os

from .refusal import Refusal, run

SETTINGS = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=ON", "-DLATCHKEY_STATIC_TOO=ON", "-DBUILD_TESTING=OFF",
            "-DLATCHKEY_EXAMPLES=OFF", "-DLATCHKEY_BENCH=OFF"]


def once(tarball, folder):
    """The folder that it was installed into, in the tree of the system's root."""
    folder.mkdir(parents=True)
    run("tar", "xf", tarball, "-C", folder)
    name = tarball.name.removesuffix(".tar.gz")
    # A cache of the compiler could hand the second build the bytes of the first.
    environment = {**os.environ, "CCACHE_DISABLE": "1", "LC_ALL": "C.UTF-8"}
    run("cmake", "-S", folder / name, "-B", folder / "build", *SETTINGS, "-DCMAKE_INSTALL_PREFIX=/usr", env=environment)
    run("cmake", "--build", folder / "build", env=environment)
    root = folder / "root"
    run("cmake", "--install", folder / "build", env={**environment, "DESTDIR": str(root)})
    return root


def twice(tarball, work):
    """In folders whose names differ, and differ in length."""
    return once(tarball, work / "one"), once(tarball, work / "the-other/one")


def files(root):
    for path in sorted(root.rglob("*")):
        if path.is_symlink() or path.is_file():
            yield path.relative_to(root).as_posix()


def content(path):
    return os.readlink(path).encode() if path.is_symlink() else path.read_bytes()


def differences(one, other):
    names = sorted({*files(one), *files(other)})
    if not names:
        raise Refusal("the build installs nothing")
    found = []
    for name in names:
        there = [(root / name).exists() or (root / name).is_symlink() for root in (one, other)]
        if not all(there):
            found.append(f"{name}: only in the {'second' if there[1] else 'first'} one")
            continue
        first, second = content(one / name), content(other / name)
        if first != second:
            at = next((i for i, (a, b) in enumerate(zip(first, second)) if a != b), min(len(first), len(second)))
            found.append(f"{name}: from byte {at}; {first[at:at + 40]!r} and {second[at:at + 40]!r}")
    return found


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()
