"""program.py OUTPUT --build FOLDER: what a program with one lock costs to build, as rows of scripts/bench.

Compiles and links examples/first_lock.cpp with the library of this build, and measures the cost of including
latchkey.hpp beside that of the parts of Asio that a program with coroutines includes anyway.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def row(name, unit, figure, **more):
    made = {"group": "program", "name": name, "unit": unit, "figure": figure, "against": "", "reference": None,
            "ratio": None, "most": None, "least": None, "missing": "", "note": "", "verdict": ""}
    made.update(more)
    return made


def cpu_seconds(command):
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(command, stderr=words)
        _, status, usage = os.wait4(process.pid, 0)
        if os.waitstatus_to_exitcode(status):
            words.seek(0)
            raise RuntimeError(words.read().decode(errors="replace").strip()[-200:])
    return usage.ru_utime + usage.ru_stime


def libraries(build):
    """What the library's own pkg-config file says, but for the library."""
    with open(os.path.join(build, "latchkey.pc"), encoding="utf-8") as file:
        words = re.search(r"^Libs: (.*)$", file.read(), re.MULTILINE)[1].split()
    return [word for word in words if word.startswith(("-l", "-pthread")) and word != "-llatchkey"]


def build_rows(build, includes):
    source = os.path.join(ROOT, "examples", "first_lock.cpp")
    with tempfile.TemporaryDirectory() as folder:
        made, program = os.path.join(folder, "program.o"), os.path.join(folder, "program")
        compiled = cpu_seconds(["c++", "-std=c++20", "-O2", *includes, "-c", source, "-o", made])
        linked = cpu_seconds(["c++", made, os.path.join(build, "lib", "liblatchkey.a"), *libraries(build), "-s",
                              "-Wl,--gc-sections", "-o", program])
        size = os.path.getsize(program)
    return [row("compiling examples/first_lock.cpp with -O2", "s of CPU", compiled),
            row("linking it", "s of CPU", linked),
            row("its binary, stripped, with the library in it", "bytes", size)]


def include_row(includes):
    done = subprocess.run([sys.executable, "-B", os.path.join(ROOT, "test", "compile", "include_cost.py"),
                           "--compiler", "c++", *[one.replace("-I", "--include=", 1) for one in includes]],
                          capture_output=True, text=True)
    found = re.search(r"latchkey.hpp ([\d.]+) s, .* ([\d.]+) s: ratio ([\d.]+), at most ([\d.]+)", done.stdout)
    if not found:
        return row("including latchkey.hpp", "s of CPU", None, missing=done.stderr.strip()[-200:] or "no figure",
                   verdict="missing")
    ours, asio, ratio, most = (float(one) for one in found.groups())
    return row("including latchkey.hpp", "s of CPU", ours, against="awaitable.hpp + ip/tcp.hpp", reference=asio,
               ratio=ratio, most=most, verdict="kept" if ratio <= most else "MISSED")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output")
    parser.add_argument("--build", required=True)
    options = parser.parse_args()
    includes = ["-I" + os.path.join(ROOT, "include"), "-I" + os.path.join(options.build, "include")]
    try:
        rows = build_rows(options.build, includes)
    except RuntimeError as failed:
        rows = [row("a program with one lock", "", None, missing=str(failed), verdict="missing")]
    rows.append(include_row(includes))
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump({"rows": rows, "curves": []}, file)


main()
