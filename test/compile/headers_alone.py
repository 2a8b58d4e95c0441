"""Each public header compiles as the only one of a file, without a warning, and twice in a row."""

import concurrent.futures
import pathlib
import sys

from compiler import WARNINGS, Compiler


def main():
    compiler = Compiler(__doc__)
    headers = []
    for folder in map(pathlib.Path, compiler.options.include):
        headers += [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.hpp"))]
    if len(headers) < 10:
        sys.exit(f"only {len(headers)} headers found")

    def compile_alone(header):
        return compiler.run(f"#include <{header}>\n#include <{header}>\n", WARNINGS)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(compile_alone, headers))
    for header, (good, text) in zip(headers, results):
        if not good:
            print(f"{header} does not compile alone:\n{text}")
    if not all(good for good, _ in results):
        sys.exit(1)
    print(f"{len(headers)} headers")


main()
