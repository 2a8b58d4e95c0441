"""P3: a program that was compiled with another Boost, or with what changes Asio's types, does not link, and the message
says why; nor does CMake find the library beside another Boost; nor does anything below C++20 compile."""

import os
import re
import shutil

from support import HERE, configure, expect, fresh, made, only, options, place, refused, run

WORDS = "this_program_and_liblatchkey_must_use_the_same_Boost_"
LETTERS = [(["-DBOOST_ASIO_DISABLE_THREADS"], "_T"),
           (["-DBOOST_ASIO_HAS_IO_URING", "-DBOOST_ASIO_DISABLE_EPOLL"], "_U"),
           (["-DBOOST_ASIO_ENABLE_HANDLER_TRACKING"], "_H")]


def boost_version(compiler):
    said = run(compiler, "-E", "-dM", "-include", "boost/version.hpp", "-x", "c++", "/dev/null")
    return re.search(r"#define BOOST_VERSION (\d+)", said).group(1), re.search(r'#define BOOST_LIB_VERSION "(\w+)"', said).group(1)


def other_boost(compiler, folder):
    """A folder with headers of another version: those of this one, under another number."""
    said = run(compiler, "-M", "-include", "boost/version.hpp", "-x", "c++", "/dev/null")
    original = re.search(r"\S+/boost/version\.hpp", said).group(0)
    fresh(folder)
    (folder / "boost").mkdir()
    text = open(original, encoding="utf-8").read()
    changed = re.sub(r"#define BOOST_VERSION \d+", "#define BOOST_VERSION 107400", text)
    changed = re.sub(r'#define BOOST_LIB_VERSION "\w+"', '#define BOOST_LIB_VERSION "1_74"', changed)
    expect(changed != text, "the copy of boost/version.hpp is like the original")
    (folder / "boost/version.hpp").write_text(changed, encoding="utf-8")
    return folder


def links(compiler, prefix, folder, number, other):
    fresh(folder)
    flags = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{prefix / 'include'}"]
    shared = only(prefix.rglob("liblatchkey.so"), "shared library")
    ways = {"static": [shared.with_suffix(".a"), "-lhiredis", "-lssl", "-lcrypto", "-pthread"], "shared": [shared, f"-Wl,-rpath,{shared.parent}"]}

    def compiled(*settings):
        run(compiler, *settings, *flags, "-c", HERE / "linkage/linkage.cpp", "-o", folder / "program.o")
        return folder / "program.o"

    def refused_by_both(words, program, when_linked=()):
        for libraries in ways.values():
            refused([f"undefined reference to `latchkey::detail::{WORDS}{words}'"], compiler, program, *when_linked, *libraries,
                    "-o", folder / "refused")

    for optimised, when_linked in (([], []), (["-O2", "-ffunction-sections", "-fdata-sections"], ["-Wl,--gc-sections"])):
        program = compiled(*optimised)
        for way, libraries in ways.items():
            run(compiler, program, *when_linked, *libraries, "-o", folder / way)
            run(folder / way)
        refused_by_both("107400", compiled(f"-I{other}", *optimised), when_linked)
    for settings, letter in LETTERS:
        refused_by_both(f"{number}{letter}", compiled(*settings))


def every_header(compiler, prefix, number):
    headers = sorted(path.relative_to(prefix / "include").as_posix() for path in (prefix / "include").rglob("*.hpp"))
    expect(len(headers) > 20, f"P3: only {headers}")
    for header in headers:
        said = run(compiler, "-std=c++20", "-E", "-P", f"-I{prefix / 'include'}", "-include", header, "-x", "c++", "/dev/null")
        expect(f"&{WORDS}{number}" in said, f"P3: a program that includes {header} alone is not guarded")
    return len(headers)


def cmake(given, prefix, folder, other):
    def words(*settings):
        fresh(folder)
        return configure(HERE / "linkage", folder, given.compiler, f"-DCMAKE_PREFIX_PATH={prefix}",
                         "-DBoost_NO_BOOST_CMAKE=ON", f"-DBoost_INCLUDE_DIR={other}", *settings)

    old = fresh(folder.with_name("old-boost"))
    shutil.copytree(other, old, dirs_exist_ok=True)
    header = old / "boost/version.hpp"
    # Newer than ours: it satisfies "at least 1.81", and is refused all the same.
    header.write_text(header.read_text(encoding="utf-8").replace("107400", "108200").replace("1_74", "1_82"), encoding="utf-8")
    settings = [f"-DBoost_INCLUDE_DIR={old}", "-DWANTED=shared"]
    refused(["was built with Boost 1.81.0", "Boost 1.82.0 was found", "latchkey_ALLOW_OTHER_BOOST"], *words(*settings))
    run(*words(*settings, "-Dlatchkey_ALLOW_OTHER_BOOST=ON"))
    refused([f"{WORDS}108200"], "cmake", "--build", folder)


def main():
    given = options(__doc__)
    _, prefix = made(given.build)
    folder = place(given.build) / "guard"
    number, _ = boost_version(given.compiler)
    other = other_boost(given.compiler, folder / "other")
    compilers = [given.compiler] + [path for path in map(shutil.which, ("g++", "clang++-14")) if path]
    compilers = list({os.path.realpath(path): path for path in reversed(compilers)}.values())
    for compiler in compilers:
        links(compiler, prefix, folder / "links", number, other)
        refused(["latchkey needs C++20"], compiler, "-std=c++17", "-fsyntax-only", f"-I{prefix / 'include'}",
                HERE / "linkage/linkage.cpp")
    headers = every_header(given.compiler, prefix, number)
    cmake(given, prefix, folder / "cmake", other)
    print(f"P3: {headers} headers guarded; refused with words by {len(compilers)} compilers, static and shared, and by CMake")


main()
