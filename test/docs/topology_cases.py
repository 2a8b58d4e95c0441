"""topology_cases.py --check ROOT: each of the 59 cases of docs/topology-cases.md has the tests that its row names, by their
tag [case-tN], and no others; a row without a test says why. topology_cases.py --self-test: shows that --check can fail.
"""

import collections
import pathlib
import re
import sys
import tempfile

PAGE = "docs/topology-cases.md"
CASES = 59
ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
TAG = re.compile(r"\[case-t(\d+)\]")
NOT_TRIED = "not tried: "


def tagged(root):
    found = collections.defaultdict(set)
    for path in (root / "test").rglob("*_test.cpp"):
        for number in TAG.findall(path.read_text(encoding="utf-8")):
            found[int(number)].add(path.name)
    return found


def wrong(root):
    tests, said = tagged(root), []
    rows = {int(row[0]): row[3] for row in ROW.findall((root / PAGE).read_text(encoding="utf-8"))}
    for number in sorted(set(range(1, CASES + 1)) | set(rows) | set(tests)):
        if not 1 <= number <= CASES:
            said.append(f"case {number}: there are {CASES}")
        elif number not in rows:
            said.append(f"case {number}: has no row in {PAGE}")
        elif not tests[number]:
            if not rows[number].startswith(NOT_TRIED):
                said.append(f"case {number}: no test has the tag [case-t{number}], and its row does not say why")
        elif (named := set(re.findall(r"`(\w+\.cpp)`", rows[number]))) != tests[number]:
            said.append(f"case {number}: its row names {sorted(named)}, the tag stands in {sorted(tests[number])}")
    return said


def self_test():
    def tried(change):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "test").mkdir()
            (root / "docs").mkdir()
            rows = [f"| {n} | it | that | `all_test.cpp` |" for n in range(1, CASES + 1)]
            tags = [f"[case-t{n}]" for n in range(1, CASES + 1)]
            change(rows, tags)
            (root / PAGE).write_text("\n".join(rows) + "\n", encoding="utf-8")
            (root / "test/all_test.cpp").write_text("\n".join(tags), encoding="utf-8")
            return wrong(root)

    assert tried(lambda rows, tags: None) == []
    assert "no row" in tried(lambda rows, tags: rows.pop())[0]
    assert "no test" in tried(lambda rows, tags: tags.pop())[0]
    assert "names" in tried(lambda rows, tags: rows.__setitem__(4, "| 5 | it | that | `other_test.cpp` |"))[0]
    assert "there are" in tried(lambda rows, tags: tags.append("[case-t60]"))[0]

    def without_a_test(rows, tags):
        tags.pop()
        rows[-1] = f"| {CASES} | it | that | not tried: nobody knows how |"

    assert tried(without_a_test) == []


if sys.argv[1:] == ["--self-test"]:
    self_test()
elif sys.argv[1:2] == ["--check"] and len(sys.argv) == 3:
    for line in (found := wrong(pathlib.Path(sys.argv[2]))):
        print(line)
    sys.exit(bool(found))
else:
    sys.exit(__doc__)
