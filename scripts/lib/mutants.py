"""Takes out one cure after the other (test/mutants.txt) and looks whether a test notices. See scripts/mutants.

A mutant is one or two sources of lib/, written with its changes under BUILD/work/NAME, compiled as the build compiles
the original, and linked in its place. What the build made is not touched.
"""

import argparse
import concurrent.futures
import html
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time

from mutant_list import TARGETS, Broken, library, listed, misplaced

# Of all parts: a machine, the session, two scripts, what only the simulation finds.
QUICK = [
    "fenced-token-re-read",
    "history-05-release-counts-down",
    "history-13-kill-not-awaited",
    "history-15-lease-from-the-reply",
    "hand-off-without-a-bound",
    "joint-holds-while-it-waits",
    "session-batch-shifted",
    "wake-message-during-a-try",
]
LONG_UNIT_TESTS = ["sweep:*", "walk:*", "watchdog: a hundred thousand*", "seam: names that are swept*"]
CPU_SECONDS = 300  # of one program; the slowest takes a third of that on a slow machine when nothing is wrong
WALL_SECONDS = 1800  # for what waits, and for a machine that is very busy
MEMORY = 4 << 30
START = time.monotonic()


def say(text):
    seconds = int(time.monotonic() - START)
    print(f"[{seconds // 60:2d}:{seconds % 60:02d}] {text}", flush=True)


def options():
    parser = argparse.ArgumentParser(prog="scripts/mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="name the mutants, and say what each takes out")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these; * and ? stand for anything")
    parser.add_argument("--quick", action="store_true", help="only the eight that scripts/test --all looks at")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N",
                        help="so many at a time (default: all cores)")
    parser.add_argument("--simulation-first", action="store_true", help="shows which of them the simulation finds")
    parser.add_argument("--without-simulation", action="store_true",
                        help="unit tests, then every server test: what survives is found by the simulation alone")
    parser.add_argument("--seeds", type=int, default=12000, metavar="N", help="of each simulation (default: 12000)")
    parser.add_argument("--build", default="build/mutants", metavar="DIR", help="a folder that is built already, with "
                        "what is changed compiled alone (default: build/mutants, which is brought up to date)")
    parser.add_argument("--unchecked", action="store_true",
                        help="do not first look whether everything passes while nothing is taken out")
    parser.add_argument("--targets", action="store_true", help=argparse.SUPPRESS)  # what has to be built first
    parser.add_argument("--sources", action="store_true", help=argparse.SUPPRESS)  # what is changed, as a list of CMake's
    given = parser.parse_args()
    if given.jobs < 1 or given.seeds < 1:
        parser.error("--jobs and --seeds are numbers from 1 on")
    return given, parser


def chosen(every, given, parser):
    names = [mutant.name for mutant in every]
    wanted = QUICK if given.quick else given.only or ["*"]
    found = set()
    for pattern in wanted:
        fitting = {name for name in names if re.fullmatch(pattern.replace("*", ".*").replace("?", "."), name)}
        if not fitting:
            parser.error(f"no such mutant: {pattern} (scripts/mutants --list names them)")
        found |= fitting
    return [mutant for mutant in every if mutant.name in found]


# --- programs ---

def cpu_seconds(pid):
    try:
        fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0


running = set()
guard = threading.Lock()


def kill_group(process, how):
    try:
        os.killpg(process.pid, how)
    except ProcessLookupError:
        pass


def run(command, log, cwd=None, until=None):
    """Runs it with its output in the file `log`, to its end or until that says `until`. Answers its exit code, or None
    if it did not end in time: SIGTERM makes Catch2 say where it was."""
    def alone():
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with open(log, "wb") as out:
        process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                   preexec_fn=alone)
    with guard:
        running.add(process)
    try:
        began = time.monotonic()
        while True:
            try:
                return process.wait(timeout=0.1)
            except subprocess.TimeoutExpired:
                pass
            if until and until in read(log):
                return 1
            if time.monotonic() - began > WALL_SECONDS:
                raise Broken(f"no end after {WALL_SECONDS} s: {log}")
            if cpu_seconds(process.pid) > CPU_SECONDS:
                process.terminate()
                try:
                    process.wait(timeout=5)
                except subprocess.TimeoutExpired:
                    pass
                return None
    finally:
        kill_group(process, signal.SIGKILL)
        process.wait()
        with guard:
            running.discard(process)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


class Build:
    """What ninja would do for one source and for one program."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        try:
            entries = json.load(open(f"{folder}/compile_commands.json", encoding="utf-8"))
        except OSError:
            raise Broken(f"{folder} is not configured")
        self.entries = entries
        self.compiles = {os.path.relpath(entry["file"]): shlex.split(entry["command"]) for entry in entries}
        self.launcher = [shutil.which("ccache")] if shutil.which("ccache") else []
        self.links = {}

    def link_command(self, target):
        if target not in self.links:
            out = subprocess.run(["ninja", "-C", self.folder, "-t", "commands", target], capture_output=True, text=True)
            last = (out.stdout.strip().splitlines() or [""])[-1]
            if out.returncode != 0 or " -o " not in last:
                raise Broken(f"{self.folder} has no program {target}")
            self.links[target] = shlex.split(last.removeprefix(": && ").split(" && ")[0])
        return self.links[target]

    def members(self, archives):
        """The objects that ninja puts into these archives."""
        found = self.ninja("query", *archives).splitlines()
        return {line.strip() for line in found if line.endswith(".o")}

    def ninja(self, tool, *words):
        return subprocess.run(["ninja", "-C", self.folder, "-t", tool, *words], capture_output=True, text=True).stdout

    def program(self, target):
        words = self.link_command(target)
        return os.path.join(self.folder, words[words.index("-o") + 1])

    def compile(self, source, changed, out, log):
        if source not in self.compiles:
            raise Broken(f"{source} is not compiled alone in {self.folder}: not one of those that the build was made for")
        words = list(self.compiles[source])
        words[-1] = changed
        return self.run_compiler(words, out, log)

    def compile_with(self, header, folder):
        """All that includes a header, with that of this folder in its stead: by what they replace."""
        users, one = set(), None
        for line in self.ninja("deps").splitlines():
            if line and not line.startswith(" "):
                one = line.split(":")[0]
            elif line and os.path.realpath(os.path.join(self.folder, line.strip())) == os.path.realpath(header):
                users.add(one)
        made = {}
        for entry in self.entries:
            words = shlex.split(entry["command"])
            if words[words.index("-o") + 1] not in users:
                continue
            out = f"{folder}/{len(made)}-{os.path.basename(words[-1])}.o"
            words[1:1] = [f"-I{folder}/{root}" for root in ("lib", "include")]
            made[self.run_compiler(words, out, f"{out}.log")] = out
        if not made:
            raise Broken(f"nothing in {self.folder} includes {header}")
        return made

    def run_compiler(self, words, out, log):
        original = words[words.index("-o") + 1]
        words[words.index("-o") + 1] = out
        # What a change leaves unused is no error. The launcher makes a second run quick.
        words = [word for word in words if not word.startswith("-Werror")] + ["-w"]
        if run(self.launcher + words, log, self.folder) != 0:
            raise Broken(f"does not compile: {log}")
        return original

    def link(self, target, objects, out, log):
        words = list(self.link_command(target))
        words[words.index("-o") + 1] = out
        libraries = self.members([word for word in words if word.endswith(".a")])
        for original, changed in objects.items():
            if original in words:
                words[words.index(original)] = changed
            elif original in libraries:  # which are not asked for what is known already
                words.insert(words.index("-o") + 2, changed)
        if run(words, log, self.folder) != 0:
            raise Broken(f"does not link: {log}")


# --- who catches it ---

def failed_case(text):
    """Where Catch2 was when it ended, from its XML."""
    cases = re.findall(r'<TestCase name="([^"]*)"[^>]*?filename="([^"]*)"', text)
    if not cases:
        return "before any test"
    name, file = cases[-1]
    return f"{os.path.basename(html.unescape(file))}: {html.unescape(name)}"


def try_catch2(program, what, log, tests):
    if tests:
        parts = [["--filenames-as-tags", ",".join(f"[#{test}]" for test in tests)]]
    elif what == "server":
        parts = [[]]
    else:  # what takes a second before what takes twenty
        parts = [[f'~"{name}"' for name in LONG_UNIT_TESTS], [",".join(f'"{name}"' for name in LONG_UNIT_TESTS)]]
    for part in parts:
        code = run([program, "--abort", "--reporter", "xml", *part], log)
        if code != 0:
            return failed_case(read(log)) + ("" if code is not None else " (does not end)")
    return None


def try_simulation(program, log, seeds, kinds):
    chosen = ["--kind", ",".join(kinds)] if kinds else []
    code = run(["stdbuf", "-oL", program, "--seeds", str(seeds)] + chosen, log, until="VIOLATION")
    found = re.search(r"VIOLATION, seed (\d+), kind ([\w-]+): ([^\n]*)", read(log))
    if found:
        return f"simulation seed {found[1]} ({found[2]}): {found[3]}"
    if code == 0:
        return None
    return "simulation: does not end" if code is None else f"simulation: ends with code {code}"


def try_all(build, objects, runs, folder, seeds):
    """The first who notices, and after how many seconds; None and the seconds if nobody does."""
    seconds = 0.0
    for one in runs:
        what, *tests = one.split()
        if objects:
            program = f"{folder}/{what}"
            build.link(TARGETS[what], objects, program, f"{folder}/{what}-link.log")
        else:
            program = build.program(TARGETS[what])
        began = time.monotonic()
        log = f"{folder}/{what}.log"
        caught = (try_simulation(program, log, seeds, tests) if what == "simulation" else
                  try_catch2(program, what, log, tests))
        seconds += time.monotonic() - began
        if objects:
            os.remove(program)
        if caught:
            return caught, seconds
    return None, seconds


def order(mutant, given):
    if given.without_simulation:
        return ["unit", "server"]
    if not given.simulation_first or "server" in mutant.runs[0]:
        return mutant.runs
    simulated = [one for one in mutant.runs if one.startswith("simulation")]
    return (simulated or ["simulation"]) + [one for one in mutant.runs if one not in simulated]


def try_mutant(mutant, build, work, given):
    folder = f"{work}/{mutant.name}"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    objects = {}
    for file, text in mutant.sources(library()).items():
        os.makedirs(os.path.dirname(f"{folder}/{file}"), exist_ok=True)
        with open(f"{folder}/{file}", "w", encoding="utf-8") as out:
            out.write(text)
        out = f"{folder}/{os.path.basename(file)}.o"
        if file.endswith(".hpp"):
            objects.update(build.compile_with(file, folder))
        else:
            objects[build.compile(file, f"{folder}/{file}", out, f"{out}.log")] = out
    found = try_all(build, objects, order(mutant, given), folder, given.seeds)
    for out in objects.values():
        os.remove(out)
    return found


# --- the whole ---

def sound(build, mutants, work, given):
    """Without a mutant nothing may fail, else everything would be caught by that."""
    every = {one for mutant in mutants for one in order(mutant, given)}
    tests = sorted({test for one in every if one.startswith("server ") for test in one.split()[1:]})
    runs = [one for one in ("unit", "simulation", "server") if one in every]
    runs += sorted(one for one in every if one.startswith("simulation "))
    if tests and "server" not in runs:
        runs.append("server " + " ".join(tests))
    for one in runs:
        say(f"nothing taken out: {one.split()[0]} ...")
        folder = f"{work}/unchanged"
        os.makedirs(folder, exist_ok=True)
        caught, seconds = try_all(build, {}, [one], folder, given.seeds)
        if caught:
            say(f"FAILED without any mutant: {caught}; the output: {folder}/{one.split()[0]}.log")
            return False
        say(f"    passes, in {seconds:.0f} s")
    return True


def table(rows):
    heads = ("mutant", "caught by", "after")
    rows = [(name, what.replace("|", "/"), f"{seconds:.0f} s") for name, what, seconds in rows]
    wide = [max(len(row[i]) for row in rows + [heads]) for i in (0, 2)]
    print()
    for name, what, seconds in [heads, ("-" * wide[0], "---", "-" * (wide[1] - 1) + ":"), *rows]:
        print(f"| {name:<{wide[0]}} | {seconds:>{wide[1]}} | {what} |")


def main():
    given, parser = options()
    try:
        every = listed()
    except Broken as why:
        sys.exit(str(why))
    mutants = chosen(every, given, parser)
    if given.list:
        for mutant in mutants:
            print(mutant.name)
            print(textwrap.fill(mutant.about, 110, initial_indent="    ", subsequent_indent="    "))
        print(f"{len(mutants)} mutants")
        return 0
    if given.targets:
        runs = {one.split()[0] for mutant in mutants for one in order(mutant, given)}
        print(*sorted(TARGETS[one] for one in runs if one in TARGETS))
        return 0
    if given.sources:
        try:
            print(*sorted({os.path.abspath(file) for mutant in mutants for file in mutant.sources(library())}), sep=";", end="")
        except Broken as why:
            sys.exit(str(why))
        return 0
    problem = next(misplaced(every, library()), None)
    if problem:
        say(problem)
        return 1
    work = os.path.abspath("build/mutants/work")
    os.makedirs(work, exist_ok=True)
    try:
        build = Build(given.build)
        if not given.unchecked and not sound(build, mutants, work, given):
            return 1
    except Broken as why:
        say(str(why))
        return 1
    rows, survived, broken, done = {}, [], [], 0
    say(f"taking out {len(mutants)} cures, {given.jobs} at a time")
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        futures = {pool.submit(try_mutant, mutant, build, work, given): mutant for mutant in mutants}
        try:
            for future in concurrent.futures.as_completed(futures):
                name = futures[future].name
                done += 1
                try:
                    caught, seconds = future.result()
                    if not caught:
                        survived.append(name)
                    rows[name] = (name, caught or "NOBODY: it survives", seconds)
                    say(f"{done}/{len(mutants)} {name}: {rows[name][1]} ({seconds:.0f} s)")
                except Broken as why:
                    broken.append(name)
                    rows[name] = (name, f"NOT TRIED: {why}", 0)
                    say(f"{done}/{len(mutants)} {name}: {why}")
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            with guard:
                for process in running:
                    kill_group(process, signal.SIGKILL)
            raise
    table([rows[mutant.name] for mutant in mutants])
    print()
    for title, names in (("survived", survived), ("could not be tried", broken)):
        if names:
            print(f"{title}: {', '.join(sorted(names))}")
    by_simulation = sum(row[1].startswith("simulation") for row in rows.values())
    caught = len(mutants) - len(survived) - len(broken)
    print(f"{caught} of {len(mutants)} mutants caught, {by_simulation} of them by the simulation")
    return 1 if survived or broken else 0


try:
    sys.exit(main())
except KeyboardInterrupt:
    sys.exit(130)
