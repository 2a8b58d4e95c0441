"""sizes.py ROOT [--write] | --self-test: no class has more than 45 member functions, no function more than 60 lines.

What is larger stands with its size in sizes.txt, beside this script. That list only shrinks: who grows fails, and so does
who has become smaller and stands there with the old size. --write brings it up to date, and refuses to let it grow.
Files are advised to stay below 400 lines: the longest are told.
"""

import collections
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

MOST_FUNCTIONS = 45
MOST_LINES = 60
MOST = {"class": MOST_FUNCTIONS, "function": MOST_LINES}
ADVISED_FILE = 400
ALLOWED = pathlib.Path(__file__).with_name("sizes.txt")


def tags_of(root, paths):
    """What Universal Ctags finds: it knows where a function and a class end."""
    ctags = shutil.which("ctags")
    if not ctags:
        sys.exit("ctags is missing (Debian: universal-ctags)")
    options = ["--languages=C++", "--kinds-C++=fpcs", "--fields=+neSs", "--output-format=json", "-f", "-", "-L", "-"]
    names = "\n".join(str(path) for path in paths)
    made = subprocess.run([ctags, "--options=NONE", *options], cwd=root, input=names, capture_output=True, text=True)
    if made.returncode:
        sys.exit("ctags: " + made.stderr.strip())
    return [json.loads(line) for line in made.stdout.splitlines()]


def sizes_of(tags):
    """(kind, file, name) -> size, of each class and each function."""
    sizes = collections.Counter()
    classes = collections.defaultdict(list)
    for tag in tags:
        if tag["kind"] in ("class", "struct") and "end" in tag:
            scope = tag.get("scope")
            name = f"{scope}::{tag['name']}" if scope else tag["name"]
            classes[tag["path"], name].append((tag["line"], tag["end"]))
    for tag in tags:
        if tag["kind"] not in ("function", "prototype"):
            continue
        at = tag["path"], tag.get("scope", "")
        if any(first < tag["line"] <= last for first, last in classes.get(at, [])):
            sizes["class", tag["path"], tag["scope"].split("::")[-1]] += 1
        if tag["kind"] == "function" and "end" in tag:
            key = "function", tag["path"], tag["name"]
            sizes[key] = max(sizes[key], tag["end"] - tag["line"] + 1)
    return sizes


def read_allowed():
    rows = (line.split() for line in ALLOWED.read_text(encoding="utf-8").splitlines())
    return {(kind, path, name): int(size) for kind, path, name, size in (row for row in rows if row)}


def self_test():
    """A class and a function that are just small enough, and the same with one more."""
    for more, found in ((0, []), (1, [("class", MOST_FUNCTIONS + 1), ("function", MOST_LINES + 1)])):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path("made.hpp")
            members = "".join(f"  int member{i}(int a);\n" for i in range(MOST_FUNCTIONS + more))
            body = "  x();\n" * (MOST_LINES - 2 + more)
            text = f"namespace a {{\nclass made {{\n{members}  int data;\n}};\n}}\nvoid made_too() {{\n{body}}}\n"
            (pathlib.Path(folder) / path).write_text(text, encoding="utf-8")
            large = large_in(folder, [path])
            if sorted((key[0], size) for key, size in large.items()) != found:
                sys.exit(f"expected {found}, found {large}")


def large_in(root, paths):
    return {key: size for key, size in sizes_of(tags_of(root, paths)).items() if size > MOST[key[0]]}


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = pathlib.Path(sys.argv[1])
    tops = ("include", "lib", "tools", "testing", "test", "bench", "examples")
    paths = sorted(p.relative_to(root) for t in tops for p in (root / t).rglob("*") if p.suffix in (".hpp", ".cpp"))
    files = {path: len((root / path).read_text(encoding="utf-8").splitlines()) for path in paths}
    print(f"{len(files)} files, median {statistics.median(files.values()):.0f} lines; the longest:")
    for path in sorted(files, key=files.get, reverse=True)[:5]:
        print(f"  {files[path]:4} {path}" + (" (more than is advised)" if files[path] > ADVISED_FILE else ""))

    large = large_in(root, paths)
    allowed = read_allowed()
    wrong = []
    for key, size in sorted(large.items()):
        if size > allowed.get(key, MOST[key[0]]):
            what = "member functions" if key[0] == "class" else "lines"
            wrong.append(f"{key[0]} {key[2]} in {key[1]} has {size} {what}; at most {allowed.get(key, MOST[key[0]])}")
    if "--write" in sys.argv and not wrong:
        rows = (" ".join((*key, str(size))) for key, size in sorted(large.items()))
        ALLOWED.write_text("\n".join(rows) + "\n", encoding="utf-8")
        return
    for key, size in sorted(allowed.items()):
        if large.get(key, 0) < size:
            wrong.append(f"{key[0]} {key[2]} in {key[1]} has become smaller: {ALLOWED.name} still says {size} (--write)")
    if wrong:
        sys.exit("\n".join(wrong))


main()
