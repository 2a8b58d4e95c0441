"""check_sources.py BUILD_DIR [--built-in OTHER_BUILD_DIR] [--jobs N]

Lets the compiler of a configured build look at every source file, each alone, with the flags it is built with, and make
nothing of it. Faster than a build by half; the long headers of others are read once. What the same compiler has built in
another folder, where a warning is an error too, is left out. Exit code: 0 no file has a remark, 1 some have, 2 wrong usage.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

OTHERS = """
#include <boost/asio.hpp>
#include <boost/container/vector.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <deque>
#include <fstream>
#include <functional>
#include <future>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>
"""
# What says where the output goes, with its argument; and what differs between libraries and programs.
WITH_ARGUMENT = {"-o", "-MF", "-MT", "-MQ"}
ALONE = {"-c", "-MD", "-MMD", "-fPIC", "-fPIE", "-fpic", "-fpie"}


def flags_of(entry):
    """The compiler and its flags, without the file and what comes out."""
    arguments = iter(shlex.split(entry["command"]))
    flags = []
    for argument in arguments:
        if argument in WITH_ARGUMENT:
            next(arguments)
        elif argument not in ALONE and argument != entry["file"]:
            flags.append(argument)
    return flags


def built_in(folder):
    """The source files of which there are objects; a file of several says which they are."""
    for entry in json.loads((folder / "compile_commands.json").read_text(encoding="utf-8")):
        file = pathlib.Path(entry["file"])
        arguments = shlex.split(entry["command"])
        if not (folder / arguments[arguments.index("-o") + 1]).exists():
            continue
        together = re.findall(r'^#include "(.*)"$', file.read_text(encoding="utf-8"), re.M) if file.suffix == ".cxx" else []
        yield from together or [entry["file"]]


def shared_flags(flags):
    """Those that a precompiled header depends on."""
    rest = iter(flags)
    return [flag for flag in rest if not (flag == "-isystem" and next(rest)) and not flag.startswith(("-I", "-D"))]


def main():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--built-in", type=pathlib.Path, metavar="OTHER_BUILD_DIR")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()

    entries = json.loads((options.build / "compile_commands.json").read_text(encoding="utf-8"))
    left_out = set(built_in(options.built_in)) if options.built_in else set()
    entries = [entry for entry in entries if entry["file"] not in left_out]
    header = options.build / "others.hpp"
    precompiled = {}  # by the flags

    def run(command, folder):
        return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)

    def precompile(flags):
        made = options.build.absolute() / f"others{len(precompiled)}.pch"
        precompiled[tuple(flags)] = made
        # Their templates are instantiated there and not for each file: a third of the time.
        return run([*flags, "-fpch-instantiate-templates", "-x", "c++-header", str(header.absolute()), "-o", str(made)], options.build)

    def look(entry):
        flags = flags_of(entry)
        command = [*flags, "-fsyntax-only", entry["file"]]
        # A program's own part of Catch2 is had by including it otherwise.
        if "CATCH_CONFIG_" not in pathlib.Path(entry["file"]).read_text(encoding="utf-8"):
            command[1:1] = ["-include-pch", str(precompiled[tuple(shared_flags(flags))])]
        return entry["file"], run(command, entry["directory"])

    header.write_text(OTHERS, encoding="utf-8")
    for entry in entries:
        flags = shared_flags(flags_of(entry))
        if tuple(flags) not in precompiled and (made := precompile(flags)).returncode != 0:
            sys.exit(made.stdout)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for number, (file, result) in enumerate(pool.map(look, entries), 1):
            if result.stdout or result.returncode != 0:
                failed += 1
                print(f"FAILED: {file}\n{result.stdout}", flush=True)
            if number % 50 == 0:
                print(f"[{number}/{len(entries)}]", flush=True)
    print(f"{len(entries)} files, {failed} with a remark; {len(left_out)} left out; {len(precompiled)} sets of flags")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
