"""Runs the compiler of the build on a piece of text. Options: --compiler PATH --include FOLDER (repeated)."""

import argparse
import os
import subprocess
import tempfile

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]


class Compiler:
    def __init__(self, description):
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--compiler", required=True)
        parser.add_argument("--include", action="append", default=[])
        self.options = parser.parse_args()

    def command(self, extra):
        includes = ["-I" + folder for folder in self.options.include]
        return [self.options.compiler, "-std=c++20", "-fsyntax-only", *includes, *extra, "-x", "c++", "-"]

    def run(self, text, extra=()):
        """(compiled, what the compiler said)"""
        done = subprocess.run(self.command(extra), input=text, capture_output=True, text=True, timeout=120,
                              env={**os.environ, "LC_ALL": "C"})
        return done.returncode == 0, done.stderr

    def cpu_seconds(self, text):
        """CPU time rather than wall time, so that other work on the machine counts less."""
        with tempfile.TemporaryFile("w+") as source:
            source.write(text)
            source.seek(0)
            process = subprocess.Popen(self.command(["-O0"]), stdin=source)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise SystemExit("does not compile:\n" + text)
            return usage.ru_utime + usage.ru_stime
