"""functions.py --check ROOT: each function that the tables of rules in docs/safety.md name is in lib/, by that class.
functions.py --self-test: shows that this can fail."""

import pathlib
import re
import sys

HEAD = "| rule | function |"
NAMED = re.compile(r"^\|[^|]*\| `(\w+)::(\w+)` \|", re.M)


def named(text):
    return [found for rows in text.split(HEAD)[1:] for found in NAMED.findall(rows.split("\n\n")[0])]


def missing(names, sources):
    """A body outside the class, or a declaration where the class is."""
    lost = []
    for owner, function in names:
        inside = re.compile(rf"\b(?:class|struct) {owner}\b[^;]*?\{{.*?\b{function}\(", re.S)
        if not any(f"{owner}::{function}(" in text or inside.search(text) for text in sources):
            lost.append(f"{owner}::{function}")
    return lost


def check(root):
    names = named((root / "docs/safety.md").read_text(encoding="utf-8"))
    sources = [path.read_text(encoding="utf-8") for path in (root / "lib").rglob("*.?pp")]
    lost = missing(names, sources)
    if lost or not names:
        sys.exit("docs/safety.md names what is not in lib/: " + ", ".join(lost or ["nothing at all"]))
    print(f"{len(names)} functions, all there")


def self_test():
    sources = ["void a::b() {}", "class c {\n  bool d() const;\n};"]
    table = f"{HEAD} option |\n| --- | --- | --- |\n| x | `a::b` | |\n| y | `c::d` | |\n| z | `a::d` | |\n\n| v | `a::c` | |"
    if missing(named(f"{table}\n\n{HEAD}\n| --- | --- |\n| x | `c::e` |"), sources) != ["a::d", "c::e"]:
        sys.exit("a function that is not there was not noticed")


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    elif len(sys.argv) == 3 and sys.argv[1] == "--check":
        check(pathlib.Path(sys.argv[2]))
    else:
        sys.exit(__doc__)
