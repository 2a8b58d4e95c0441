"""P4: the packages are installed, used and purged in a bare Debian of their own: `latchkey run backup -- true` beside a
redis-server, programs that are built with CMake and pkg-config, and no file left behind.

Where no bare Debian can be made (it takes root, mmdebstrap and a mirror of Debian) the packages are unpacked into a folder
and the program runs from there; installing, building and purging are left out then, and the last line says so.
"""

import os
import shutil
import time

from support import HERE, attempt, clean_environment, expect, fresh, made, only, options, place, run, version

NEEDED = ["libhiredis-dev", "liblua5.1-0-dev", "libssl-dev", "libboost1.81-dev", "libboost-program-options1.81.0", "redis-server", "g++", "cmake",
          "make", "pkg-config"]


def why_not():
    if os.geteuid() != 0:
        return "only root can make one"
    missing = [tool for tool in ("mmdebstrap", "chroot") if not shutil.which(tool)]
    return f"{missing[0]} is missing" if missing else None


def served(prefix, socket, use):
    """Runs `use` beside a redis-server on this socket; `prefix` are the words that lead into the root."""
    run(*prefix, "redis-server", "--port", "0", "--unixsocket", socket, "--daemonize", "yes", "--save", "", "--dir", "/tmp",
        "--pidfile", f"{socket}.pid")
    try:
        deadline = time.monotonic() + 20
        while attempt(*prefix, "redis-cli", "-s", socket, "ping")[1] != "PONG\n":
            expect(time.monotonic() < deadline, "redis-server does not answer")
        use()
    finally:
        attempt(*prefix, "redis-cli", "-s", socket, "shutdown", "nosave")


def use_program(prefix, program, socket, env=None):
    program = [*program, "--uri", f"unix://{socket}"]
    code, said = attempt(*prefix, *program, "run", "backup", "--", "true", env=env)
    expect(code == 0, f"P4: latchkey run backup -- true: {code}\n{said}")
    code, said = attempt(*prefix, *program, "run", "backup", "--", *program, "status", "backup", env=env)
    expect(code == 0 and "backup" in said, f"P4: status of a held lock: {code}\n{said}")
    code, said = attempt(*prefix, *program, "status", "backup", env=env)
    expect(code == 1, f"P4: status of a lock that is free: {code}\n{said}")


def files_of(root):
    found = set()
    for folder, folders, names in os.walk(root):
        inner = os.path.relpath(folder, root)
        folders[:] = [name for name in folders if os.path.join(inner, name).removeprefix("./") not in
                      ("proc", "sys", "dev", "tmp", "run", "var/lib/dpkg", "var/lib/apt", "var/log", "var/cache", "root")]
        found.update(os.path.normpath(os.path.join(inner, name)) for name in [*names, *folders])
    return found - {"etc/ld.so.cache"}


def build_consumers(into, root):
    shutil.copytree(HERE / "linkage", root / "root/linkage")
    shutil.copytree(HERE.parent / "package", root / "root/package")
    run(*into, "cmake", "-S", "/root/linkage", "-B", "/root/shared", "-DWANTED=shared")
    run(*into, "cmake", "--build", "/root/shared")
    run(*into, "/root/shared/linkage")
    run(*into, "sh", "-ec", "g++ -std=c++20 /root/package/consumer.cpp -o /root/consumer $(pkg-config --cflags --libs latchkey)")
    shutil.copytree(HERE.parent / "testing/consumer", root / "root/testing")
    run(*into, "cmake", "-S", "/root/testing", "-B", "/root/tested")
    run(*into, "cmake", "--build", "/root/tested")
    run(*into, "/root/tested/consumer")
    served(into, "/tmp/consumer.sock", lambda: run(*into, "/root/consumer", "unix:///tmp/consumer.sock"))


def in_bare_root(packages, root):
    into = ["chroot", root, "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8",
            "DEBIAN_FRONTEND=noninteractive"]
    for path in packages:
        shutil.copy(path, root / "tmp")
    before = files_of(root)
    apt = ["apt-get", "-q", "-y", "--no-install-recommends"]
    run(*into, *apt, "install", *[f"/tmp/{path.name}" for path in packages])
    installed = files_of(root) - before
    expect({"usr/bin/latchkey", "usr/share/man/man1/latchkey.1.gz"} & installed, f"P4: installed: {sorted(installed)}")
    expect(version() in run(*into, "latchkey", "--version"), "P4: the program has another version")
    served(into, "/tmp/program.sock", lambda: use_program(into, ["latchkey"], "/tmp/program.sock"))
    build_consumers(into, root)
    names = [path.name.split("_")[0] for path in packages]
    run(*into, *apt, "purge", *names)
    left = files_of(root) - before
    expect(not left, f"P4: purging leaves {sorted(left)}")
    code, said = attempt(*into, "dpkg-query", "-W", *names)
    expect("latchkey" not in "".join(line for line in said.splitlines() if not line.startswith("dpkg-query")), said)
    print(f"P4: {len(installed)} files installed in a bare Debian, used there, and purged without a rest")


def unpacked(packages, folder, reason):
    for path in packages:
        run("dpkg-deb", "-x", path, folder)
    library = only(folder.rglob(f"liblatchkey.so.{version()}"), "shared library")
    environment = clean_environment(LD_LIBRARY_PATH=str(library.parent))
    socket = str(folder / "s")
    served([], socket, lambda: use_program([], [folder / "usr/bin/latchkey"], socket, environment))
    print(f"P4: the unpacked program works. Left out, because no bare Debian can be made here ({reason}): installing with "
          "apt, building programs against the installed packages, and purging")


def main():
    given = options(__doc__)
    made(given.build)
    packages = sorted((place(given.build) / "made").glob("*.deb"))
    expect(len(packages) == 4, f"P4: {len(packages)} packages were built")
    folder = place(given.build) / "root"
    if folder.exists():
        run("rm", "-r", "--one-file-system", folder)
    reason = why_not()
    if not reason:
        code, said = attempt("apt-get", "indextargets", "--format", "$(SITE)")
        reason = None if code == 0 and "http" in said else "apt knows no mirror"
    if not reason:
        code, said = attempt("mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(NEEDED)}", "bookworm", folder,
                             seconds=600)
        if code:
            reason = f"mmdebstrap failed with {code}: {said.strip()[-300:]}"
            run("rm", "-rf", "--one-file-system", folder)
    if reason:
        unpacked(packages, fresh(folder), reason)
        return
    try:
        in_bare_root(packages, folder)
    finally:
        run("rm", "-rf", "--one-file-system", folder)


main()
