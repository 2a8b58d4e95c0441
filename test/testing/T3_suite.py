"""T3: the suite test/server passes against the modelled server, but for the cases of a list, each with its reason.

T3_suite.py --tests PROGRAM --double PROGRAM LIST: a part of the suite, without the cases of the list.
LATCHKEY_LONG in the environment: the whole, and the list must be exact: every case that it names exists and fails.
T3_suite.py --self-test: shows that this can fail.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time
from xml.etree import ElementTree

# The part: what each kind promises, leases, waits and their ends.
PART = re.compile(r"/(contract_lock|contract_lease|contract_with_lock|kind_fair|kind_fenced|kind_read_write|kind_semaphore|"
                  r"kind_permit_semaphore|kind_latch|kind_multi|kind_relatives|answers|local_turns)_test\.cpp$")
SECONDS = 200


def read_list(text):
    """{case: reason}: a reason stands at the beginning of a line and ends with a colon, its cases stand below, indented."""
    made, reason = {}, None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if not line.startswith(" "):
            if not line.endswith(":"):
                sys.exit(f"line {number}: a reason ends with a colon")
            reason = line[:-1]
        elif reason is None:
            sys.exit(f"line {number}: a case without a reason")
        elif line.strip() in made:
            sys.exit(f"line {number}: twice in the list")
        else:
            made[line.strip()] = reason
    return made


def cases_of(program):
    """[(name, file)]"""
    done = subprocess.run([program, "--list-test-names-only", "-v", "high"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, timeout=60)
    found = re.findall(r"^(.+?)\t+ ?@(.+):\d+$", done.stdout, re.M)
    if found:
        return found
    said = subprocess.run([program, "--list-tests", "-r", "xml"], stdout=subprocess.PIPE, text=True, timeout=60).stdout  # Catch2 3.x
    return [(case.findtext("Name"), case.findtext("SourceInfo/File")) for case in ElementTree.fromstring(said).iter("TestCase")]


def run(program, double, name):
    """(passed, seconds, what it said)"""
    escaped = re.sub(r"([\\,\[\]*])", r"\\\1", name)
    environment = {**os.environ, "LATCHKEY_TEST_SERVER": str(double)}
    began = time.monotonic()
    try:
        done = subprocess.run([program, escaped], env=environment, timeout=SECONDS, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        said, good = done.stdout, done.returncode == 0 and "No test" not in done.stdout
    except subprocess.TimeoutExpired as late:
        said, good = f"{late.stdout or ''}\nnot ended after {SECONDS} s", False
    return good, time.monotonic() - began, said


def faults_of(listed, existing, results, whole):
    """What is wrong, in words. `results`: {case: passed}."""
    found = [f"fails: {name}" for name, good in results.items() if not good and name not in listed]
    if whole:
        found += [f"listed, but passes: {name} ({listed[name]})" for name, good in results.items() if good and name in listed]
        found += [f"listed, but there is no such case: {name}" for name in listed if name not in existing]
    return found


def self_test():
    listed = read_list("# words\nno rights:\n  a\n  b\n\nno disk:\n  c\n")
    if listed != {"a": "no rights", "b": "no rights", "c": "no disk"}:
        sys.exit(f"read as {listed}")
    for results, whole, wrong in (({"x": True}, False, 0), ({"x": False}, False, 1), ({"a": True, "b": False}, True, 1),
                                  ({"a": False, "b": False}, True, 0)):
        found = faults_of(listed, {"a", "b", "c", "x"}, results, whole)
        if len(found) != wrong:
            sys.exit(f"{results}: {found}")
    if len(faults_of(listed, {"a", "b"}, {}, True)) != 1:
        sys.exit("a case that does not exist is not noticed")
    print("a failure, a stale entry and an unknown one are noticed")


def main():
    if "--self-test" in sys.argv:
        return self_test()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", required=True)
    parser.add_argument("--double", required=True)
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1))
    parser.add_argument("list", type=pathlib.Path)
    given = parser.parse_args()
    whole = "LATCHKEY_LONG" in os.environ
    listed = read_list(given.list.read_text(encoding="utf-8"))
    cases = cases_of(given.tests)
    names = [name for name, file in cases if whole or (PART.search(file) and name not in listed)]
    if len(names) < 60:
        sys.exit(f"only {len(names)} cases found")
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        done = dict(zip(names, pool.map(lambda name: run(given.tests, given.double, name), names)))
    # Some of them have bounds of time that a busy machine misses, beside a redis-server too: once more, with nothing beside.
    for name, (good, _, _) in list(done.items()):
        if not good and name not in listed:
            done[name] = run(given.tests, given.double, name)
    found = faults_of(listed, {name for name, _ in cases}, {name: good for name, (good, _, _) in done.items()}, whole)
    for fault in found:
        name = next((name for name in done if fault == f"fails: {name}"), None)
        print(fault)
        if name:
            print("\n".join(done[name][2].splitlines()[-25:]))
    print(f"T3: {sum(good for good, _, _ in done.values())} of {len(names)} cases pass against the modelled server; "
          f"the list has {len(listed)} of {len(cases)}")
    if found:
        sys.exit(1)


main()
