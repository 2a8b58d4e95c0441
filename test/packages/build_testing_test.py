"""P1: BUILD_TESTING at the top level decides about tests, LATCHKEY_TESTS wins, and a subfolder brings none."""

import re
import tempfile

from support import SOURCE, configure, expect, options, pathlib, run

OUTSIDE = """cmake_minimum_required(VERSION 3.24)
project(outside LANGUAGES CXX)
include(CTest)
add_subdirectory("%s" latchkey)
"""


def tests_of(folder):
    """(tests that ctest knows, targets that build programs of tests)"""
    total = int(re.search(r"Total Tests: (\d+)", run("ctest", "--test-dir", folder, "-N")).group(1))
    targets = run("ninja", "-C", folder, "-t", "targets", "all")
    return total, re.findall(r"^(latchkey_[a-z_]*(?:tests?|test_main|test_support|simulate|torture)): phony", targets, re.M)


def main():
    given = options(__doc__)
    common = ["-DLATCHKEY_BENCH=OFF", "-DLATCHKEY_EXAMPLES=OFF"]
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)

        def configured(source, *settings):
            run(*configure(source, place / "build", given.compiler, *settings))
            return tests_of(place / "build")

        off = configured(SOURCE, *common, "-DBUILD_TESTING=OFF")
        expect(off == (0, []), f"P1: tests remain with BUILD_TESTING=OFF: {off}")
        total, targets = configured(SOURCE, *common, "-DBUILD_TESTING=ON")  # the same folder: it was no final word
        expect(total > 20 and targets, f"P1: tests are missing with BUILD_TESTING=ON: {total}, {targets}")
        total, targets = configured(SOURCE, *common, "-DBUILD_TESTING=OFF", "-DLATCHKEY_TESTS=ON")
        expect(total > 20 and targets, "P1: LATCHKEY_TESTS=ON does not win over BUILD_TESTING=OFF")
        none = configured(SOURCE, *common, "-DBUILD_TESTING=ON", "-DLATCHKEY_TESTS=OFF")
        expect(none == (0, []), f"P1: LATCHKEY_TESTS=OFF does not win over BUILD_TESTING=ON: {none}")

        (place / "CMakeLists.txt").write_text(OUTSIDE % SOURCE, encoding="utf-8")
        run("rm", "-r", place / "build")
        inner = configured(place, "-DBUILD_TESTING=ON")
        expect(inner == (0, []), f"P1: a subfolder brings its tests: {inner}")
    print("P1: five configurations have the tests that they ask for")


main()
