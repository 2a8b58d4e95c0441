"""file_sizes.py ROOT: no source file is longer than 400 lines; prints the median and the longest."""

import pathlib
import statistics
import sys

LIMIT = 400


def main():
    root = pathlib.Path(sys.argv[1])
    sizes = {}
    for top in ("include", "lib", "test", "bench", "examples"):
        for path in (root / top).rglob("*"):
            if path.suffix in (".hpp", ".cpp"):
                sizes[path.relative_to(root)] = len(path.read_text(encoding="utf-8").splitlines())
    longest = sorted(sizes, key=sizes.get, reverse=True)[:5]
    print(f"{len(sizes)} files, median {statistics.median(sizes.values()):.0f} lines; the longest:")
    for path in longest:
        print(f"  {sizes[path]:4} {path}")
    too_long = [str(path) for path, size in sizes.items() if size > LIMIT]
    if too_long:
        sys.exit(f"longer than {LIMIT} lines: " + ", ".join(sorted(too_long)))


main()
