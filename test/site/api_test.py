"""D1 can fail: a public member without a comment, a new one, and a comment that Doxygen does not understand are faults of scripts/api-docs."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

# What is replaced in include/latchkey/lease.hpp, and words of the fault; none: there is no fault.
CHANGES = [
    ("", "", None),
    ("  /// An empty lease.\n", "", "lease::lease: no comment"),
    ("  bool held() const noexcept;", "  bool held() const noexcept;\n  bool new_one() const;", "lease::new_one: no comment"),
    ("/// An empty lease.", "/// An empty </tt> lease.\n  /// \\nonsense", "nonsense"),
]


def main():
    root = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        copy = pathlib.Path(name)
        for folder in ("include", "testing/include", "scripts"):
            shutil.copytree(root / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
        header = copy / "include/latchkey/lease.hpp"
        whole = header.read_text(encoding="utf-8")
        for old, new, words in CHANGES:
            if old not in whole:
                sys.exit(f"lease.hpp has no {old!r}")
            header.write_text(whole.replace(old, new, 1) if old else whole, encoding="utf-8")
            done = subprocess.run([copy / "scripts/api-docs", "--check"], capture_output=True, text=True, timeout=120, check=False)
            if (done.returncode == 0) != (words is None) or words and words not in done.stderr:
                sys.exit(f"expected {words!r} after {old!r} became {new!r}, got {done.returncode}:\n{done.stdout}{done.stderr}")
    print(f"{len(CHANGES) - 1} faults noticed")


main()
