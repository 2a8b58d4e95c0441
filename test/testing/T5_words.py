"""T5: without Lua 5.1 find_package(latchkey COMPONENTS testing) says why there is no such component, in words.

T5_words.py --compiler C++ --scratch FOLDER ROOT
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys

# What finds no Lua, as on a machine that has none.
NO_LUA = "-DCMAKE_DISABLE_FIND_PACKAGE_Lua=ON"


def cmake(*words):
    done = subprocess.run(["cmake", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200)
    return done.returncode, re.sub(r"\s+", " ", done.stdout)


def expect(condition, text):
    if not condition:
        sys.exit(text)


class Package:
    """What an installation has, without its libraries: they are not needed to be found."""

    def __init__(self, given, name, *settings):
        self.given, self.name, self.prefix = given, name, given.scratch / name
        build = given.scratch / f"{name}-build"
        code, said = cmake("-S", given.root, "-B", build, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={given.compiler}",
                           "-DBUILD_TESTING=OFF", "-DLATCHKEY_BENCH=OFF", "-DLATCHKEY_EXAMPLES=OFF", "-DLATCHKEY_TOOLS=OFF",
                           f"-DCMAKE_INSTALL_PREFIX={self.prefix}", "-DCMAKE_BUILD_TYPE=Release", *settings)
        expect(code == 0, f"{name} does not configure:\n{said}")
        self.configured = said
        # The libraries themselves are stood for by empty files.
        for library in ("lib/liblatchkey.a", "testing/liblatchkey_testing.a"):
            (build / library).parent.mkdir(exist_ok=True)
            (build / library).touch()
        for component in ("dev", "testing"):
            code, said = cmake("--install", build, "--component", component)
            expect(code == 0, f"{name} is not installed:\n{said}")

    def asked(self, wanted, *settings):
        """(exit code, what was said) of a program that asks for it."""
        source = self.given.scratch / "asks"
        source.mkdir(exist_ok=True)
        (source / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.24)\nproject(asks LANGUAGES CXX)\n"
            f"find_package(latchkey 0.2 CONFIG {wanted})\n"
            'message(STATUS "found=${latchkey_FOUND} testing=${latchkey_testing_FOUND}")\n'
            "if(TARGET latchkey::testing)\n  message(STATUS linkable)\nendif()\n", encoding="utf-8")
        shutil.rmtree(source / "build", ignore_errors=True)
        return cmake("-S", source, "-B", source / "build", "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={self.given.compiler}",
                     f"-DCMAKE_PREFIX_PATH={self.prefix}", *settings)


def refused(package, words, *settings):
    code, said = package.asked("REQUIRED COMPONENTS testing", *settings)
    expect(code != 0, f"T5: {package.name} was found:\n{said}")
    for word in ("latchkey::testing is missing", *words):
        expect(word in said, f"T5: {package.name} is refused without the words {word!r}:\n{said}")
    code, said = package.asked("REQUIRED OPTIONAL_COMPONENTS testing", *settings)
    expect(code == 0 and "linkable" not in said and "found=1" in said.replace("TRUE", "1"), f"T5: {package.name}, optional:\n{said}")
    expect("latchkey::testing is missing" in said, f"T5: {package.name}, optional, says nothing:\n{said}")
    code, said = package.asked("REQUIRED", *settings)
    expect(code == 0 and "missing" not in said, f"T5: {package.name}, not asked for:\n{said}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--scratch", type=pathlib.Path, required=True)
    parser.add_argument("root", type=pathlib.Path)
    given = parser.parse_args()
    shutil.rmtree(given.scratch, ignore_errors=True)
    given.scratch.mkdir(parents=True)

    bare = Package(given, "without", NO_LUA)
    expect("Lua 5.1 not found" in bare.configured and "liblua5.1-0-dev" in bare.configured, f"T5:\n{bare.configured}")
    refused(bare, ["built where there was no Lua 5.1", "liblua5.1-0-dev"])
    refused(Package(given, "off", "-DLATCHKEY_TESTING=OFF"), ["LATCHKEY_TESTING=OFF"])

    whole = Package(given, "whole")
    code, said = whole.asked("REQUIRED COMPONENTS testing")
    expect(code == 0 and "linkable" in said, f"T5: it is not found where it is:\n{said}")
    refused(whole, ["needs Lua 5.1", "liblua5.1-0-dev"], NO_LUA)
    for path in whole.prefix.rglob("latchkey-testing-*.cmake"):
        path.unlink()
    refused(whole, ["was not installed into", "liblatchkey-testing-dev"])
    print("T5: four reasons, each in words; and what is there is found")


main()
