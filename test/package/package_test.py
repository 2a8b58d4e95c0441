"""package_test.py KIND --source DIR --build DIR --compiler PATH: installs the build, or builds and runs a consumer of it.

KIND is install, find_package, add_subdirectory or pkg-config. The work is done in BUILD/test/package.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("kind", choices=["install", "find_package", "add_subdirectory", "pkg-config"])
parser.add_argument("--source", type=pathlib.Path, required=True)
parser.add_argument("--build", type=pathlib.Path, required=True)
parser.add_argument("--compiler", required=True)
options = parser.parse_args()

here = pathlib.Path(__file__).resolve().parent
place = options.build / "test/package"
first_prefix = place / "prefix"
prefix = place / "moved"  # an installed package may be moved, so the consumers find it in another place


def run(*command, env=None):
    print("$", *command, flush=True)
    done = subprocess.run([str(word) for word in command], env={**os.environ, **(env or {})}, timeout=600,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(done.stdout, flush=True)
    if done.returncode:
        sys.exit(f"{command[0]} failed")
    return done.stdout


def fresh(name):
    folder = place / name
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def install():
    fresh("prefix"), fresh("moved")
    run("cmake", "--install", options.build, "--prefix", first_prefix)
    first_prefix.rename(prefix)
    files = [path.relative_to(prefix).as_posix() for path in prefix.rglob("*") if path.is_file()]
    strangers = [name for name in files if "machine" in name or "/detail/core" in name or name.endswith(".cpp")]
    if strangers or not any(name.endswith("latchkey/version.hpp") for name in files):
        sys.exit(f"installed: {files}, which should not be there: {strangers}")


def cmake_consumer(kind, *settings):
    folder = fresh(kind)
    launcher = shutil.which("ccache")
    run("cmake", "-S", here / kind, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
        f"-DCMAKE_CXX_COMPILER={options.compiler}",
        *([f"-DCMAKE_CXX_COMPILER_LAUNCHER={launcher}"] if launcher else []), *settings)
    run("cmake", "--build", folder, "--target", "consumer")
    run(folder / "consumer")


def pkg_config_consumer():
    folder = fresh("pkg-config")
    folder.mkdir(parents=True)
    paths = ":".join(str(path.parent) for path in prefix.rglob("latchkey.pc"))
    flags = run("pkg-config", "--cflags", "--libs", "latchkey", env={"PKG_CONFIG_PATH": paths}).split()
    if any(flag.startswith(("-W", "-O", "-g", "-fsan")) for flag in flags):
        sys.exit(f"our flags reach the consumer: {flags}")
    run(options.compiler, "-std=c++20", here / "consumer.cpp", "-o", folder / "consumer", *flags)
    run(folder / "consumer", env={"LD_LIBRARY_PATH": ":".join(str(path) for path in prefix.glob("lib*"))})


if options.kind == "install":
    install()
elif options.kind == "find_package":
    cmake_consumer("find_package", f"-DCMAKE_PREFIX_PATH={prefix}")
elif options.kind == "add_subdirectory":
    # All files at once: two that use one name for their own must not meet only in the batches of some consumer.
    one_batch = ("-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0")
    cmake_consumer("add_subdirectory", f"-DLATCHKEY_SOURCE={options.source}", *one_batch)
else:
    pkg_config_consumer()
