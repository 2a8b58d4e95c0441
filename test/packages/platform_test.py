"""P7: systems other than Linux are refused with words, unless asked for; what they lack stands in few files."""

import re
import tempfile

from support import SOURCE, attempt, configure, expect, options, pathlib, refused

# What only Linux has of what the library uses. A file that uses one of these is named in docs/porting.md.
LINUX_ONLY = re.compile(r"\b(?:timerfd_\w+|CLOCK_BOOTTIME|SYS_\w+|FUTEX_\w+|prctl|PR_SET_\w+|pipe2|accept4|epoll_\w+|eventfd|"
                        r"SOCK_CLOEXEC|SOCK_NONBLOCK|MSG_NOSIGNAL|TCP_USER_TIMEOUT|TCP_KEEPIDLE|sched_getaffinity|"
                        r"/proc/\w+|signalfd|memfd_create|gettid)\b|<(?:linux/|sys/(?:prctl|syscall|timerfd|epoll|eventfd|signalfd))")


def users(folder):
    found = set()
    for path in sorted((SOURCE / folder).rglob("*.[ch]pp")):
        code = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
        if LINUX_ONLY.search(code):
            found.add(path.relative_to(SOURCE).as_posix().rsplit(".", 1)[0])
    return found


def main():
    given = options(__doc__)
    settings = ["-DBUILD_TESTING=OFF", "-DLATCHKEY_BENCH=OFF", "-DLATCHKEY_EXAMPLES=OFF", "-DLATCHKEY_TOOLS=OFF",
                # CMake would look in the folders of that system.
                "-Dhiredis_LIBRARY=hiredis", "-Dhiredis_INCLUDE_DIR=/usr/include", "-DOPENSSL_INCLUDE_DIR=/usr/include"]
    for system in ("FreeBSD", "Darwin"):
        with tempfile.TemporaryDirectory() as name:
            # Of a library that is no file FindOpenSSL makes no target.
            for library in ("ssl", "crypto"):
                (pathlib.Path(name) / library).touch()
                settings.append(f"-DOPENSSL_{library.upper()}_LIBRARY={name}/{library}")
            words = configure(SOURCE, pathlib.Path(name), given.compiler, *settings, f"-DCMAKE_SYSTEM_NAME={system}")
            refused(["written for Linux alone", f"this is {system}", "docs/porting.md", "LATCHKEY_EXPERIMENTAL_PORT"], *words)
            if system == "FreeBSD":
                code, said = attempt(*words, "-DLATCHKEY_EXPERIMENTAL_PORT=ON")
                expect(code == 0 and "written for Linux alone" in said, f"P7: the port was not configured:\n{said}")

    named = set(re.findall(r"^\| `((?:lib|tools)/[\w/]+)` \|", (SOURCE / "docs/porting.md").read_text(encoding="utf-8"), re.M))
    used = users("lib") | users("tools") | users("include")
    expect(used == named, f"P7: docs/porting.md does not name {sorted(used - named)}, and names {sorted(named - used)} in vain")
    large = [name for name in used if sum(len((SOURCE / (name + end)).read_text(encoding="utf-8").splitlines())
                                          for end in (".cpp", ".hpp") if (SOURCE / (name + end)).exists()) > 400]
    expect(not large, f"P7: {large} are no small files")
    print(f"P7: two systems refused with words; {len(used)} small files use what only Linux has")


main()
