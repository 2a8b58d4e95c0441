"""floors.py ROOT: no file includes a higher floor or a stranger. floors.py --self-test: shows that this can fail.

Floors: 0 base (the vocabulary headers of include/latchkey, lib/base), 1 codec, 2 wire, 3 machine, 4 engine,
5 joint, 6 api (lib/api and the public headers named below). lib/joint/machine stands on floor 3.
"""

import pathlib
import re
import sys
import tempfile

FLOORS = {"base": 0, "codec": 1, "wire": 2, "machine": 3, "engine": 4, "joint": 5, "api": 6}
# And all of latchkey/detail.
API_HEADERS = {"client", "count_down_latch", "distributed_lock", "latchkey", "lease", "permit", "permit_semaphore",
               "read_write_lock", "semaphore", "with_lock"}

THREADS = {"thread", "mutex", "shared_mutex", "condition_variable", "future", "semaphore", "latch", "barrier"}
CLOCKS = re.compile(r"\b(?:steady_clock|system_clock|high_resolution_clock|clock_gettime|gettimeofday|timerfd_create)\b")
ASKS_THE_TIME = "base/clock.hpp"  # for floor 4 and above
ITS_OFFSET = "base/clock.cpp"

JOINS = "joint/join.hpp"  # what lib/api knows of locks of several members

BOOST_BELOW_ENGINE = {"system", "uuid", "intrusive", "container", "smart_ptr", "version"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def floor_of(path):
    """Of an include path or a path under lib/; None for what is not ours."""
    folder, _, rest = path.partition("/")
    if path.startswith("joint/machine/"):
        return FLOORS["machine"]
    if folder == "latchkey":
        return FLOORS["api"] if rest.startswith("detail/") or re.sub(r"\.hpp$", "", rest) in API_HEADERS else 0
    return FLOORS.get(folder) if rest else None


def fault(name, floor, public, quote, included):
    """Why the file `name` may not include `included`, or None."""
    if quote == '"':
        return "includes are written <folder/file.hpp>"
    ours = floor_of(included)
    if ours is not None:
        if public and not included.startswith("latchkey/"):
            return "a public header includes a file of lib/"
        if included.startswith("joint/") and not name.startswith("joint/") and included != JOINS:
            return f"of lib/joint only {JOINS} is for others"
        if included == ASKS_THE_TIME and floor < 4 and name != ITS_OFFSET:
            return "only floor 4 and above ask for the time"
        return f"floor {floor} includes floor {ours}" if ours > floor else None
    first = included.split("/")[0]
    if first == "hiredis":
        return None if floor == 1 else "hiredis is for lib/codec alone"
    if first == "boost":
        library = re.split(r"[/.]", included)[1]
        if library in BOOST_BELOW_ENGINE or floor >= 4:
            return None
        return f"Boost.{library} is for floor 4 and above"
    if "." in included:
        return None if floor >= 4 and not public else "system headers are for floor 4 and above"
    if included in THREADS and floor < 4:
        return f"<{included}>: floors 0 to 3 know no threads"
    return None if "/" not in included else "a stranger"


def faults_of(name, path, public):
    floor = floor_of(name)
    if floor is None:
        return [f"{path}: stands on no floor"]
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        include = INCLUDE.match(line)
        why = fault(name, floor, public, *include.groups()) if include else None
        if not why and floor < 4 and name != ASKS_THE_TIME and CLOCKS.search(line.split("//")[0]):
            why = "floors 0 to 3 have no clock: time is a value"
        if why:
            found.append(f"{path}:{number}: {why}: {line.strip()}")
    return found


def check(root):
    """All faults of a tree, and the number of files read."""
    found, files = [], 0
    for top, public in (("include", True), ("lib", False)):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in (".hpp", ".cpp", ".in"):
                files += 1
                found += faults_of(path.relative_to(root / top).as_posix(), path, public)
    return found, files


BAD = [  # path, text, part of the complaint
    ("lib/base/a.cpp", "#include <codec/reply.hpp>", "floor 0 includes floor 1"),
    ("lib/wire/a.cpp", "#include <machine/actions.hpp>", "floor 2 includes floor 3"),
    ("lib/engine/a.cpp", "#include <latchkey/client.hpp>", "floor 4 includes floor 6"),
    ("lib/wire/a.cpp", "#include <hiredis/read.h>", "lib/codec alone"),
    ("lib/api/a.cpp", "#include <hiredis/hiredis.h>", "lib/codec alone"),
    ("lib/machine/a.hpp", "#include <boost/asio/post.hpp>", "floor 4 and above"),
    ("lib/machine/a.cpp", "  #  include <mutex>", "no threads"),
    ("lib/machine/a.cpp", "#include <sys/socket.h>", "system headers"),
    ("lib/machine/a.cpp", "auto t = std::chrono::steady_clock::now();", "no clock"),
    ("lib/machine/a.cpp", "#include <base/clock.hpp>", "ask for the time"),
    ("lib/joint/machine/a.cpp", "#include <mutex>", "no threads"),
    ("lib/machine/a.cpp", "#include <joint/a.hpp>", "for others"),
    ("lib/api/a.cpp", "#include <joint/joint_lock.hpp>", "for others"),
    ("lib/joint/a.cpp", "#include <api/lease_state.hpp>", "floor 5 includes floor 6"),
    ("lib/codec/a.cpp", '#include "reply.hpp"', "are written"),
    ("lib/engine/a.cpp", "#include <absl/strings/cord>", "stranger"),
    ("lib/attic/a.cpp", "", "no floor"),
    ("include/latchkey/error.hpp", "#include <boost/asio/error.hpp>", "floor 4 and above"),
    ("include/latchkey/client.hpp", "#include <base/instant.hpp>", "file of lib/"),
    ("include/latchkey/client.hpp", "#include <hiredis/hiredis.h>", "lib/codec alone"),
]
GOOD = [
    ("lib/api/a.cpp", "#include <joint/join.hpp>"),
    ("lib/codec/a.cpp", "#include <hiredis/read.h>\n#include <base/instant.hpp>\n#include <vector>"),
    ("lib/machine/a.cpp", "#include <latchkey/error.hpp>\n#include <boost/intrusive/list.hpp>\n#include <chrono>"),
    ("lib/engine/a.cpp", "#include <boost/asio/post.hpp>\n#include <mutex>\n#include <sys/socket.h>\n"
                         "#include <base/clock.hpp>\nauto t = std::chrono::steady_clock::now();"),
    ("include/latchkey/client.hpp", "#include <boost/asio/post.hpp>\n#include <latchkey/lease.hpp>"),
]


def self_test():
    for name, text, complaint in BAD + [(name, text, None) for name, text in GOOD]:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True)
            path.write_text(text + "\n", encoding="utf-8")
            found, _ = check(pathlib.Path(folder))
            if complaint is None and found or complaint and (len(found) != 1 or complaint not in found[0]):
                sys.exit(f"{name}: {text!r}: expected {complaint!r}, got {found}")
    print(f"{len(BAD)} bad trees refused, {len(GOOD)} good ones accepted")


def main():
    if sys.argv[1] == "--self-test":
        return self_test()
    found, files = check(pathlib.Path(sys.argv[1]))
    print(*found, f"{files} files read, {len(found)} faults", sep="\n")
    if found or files < 20:
        sys.exit(1)


main()
