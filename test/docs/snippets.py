"""snippets.py --check ROOT: every C++ block of README.md and docs/*.md is the text of a region of a compiled file.
snippets.py --update ROOT: makes it so. snippets.py --self-test: shows that --check can fail.

A block is preceded by a line `<!-- from: examples/first_lock.cpp#region -->`; the file has `// [region]` and
`// [/region]` lines around the text. A file that a page names by its whole path exists, and so does one that it links to.
"""

import pathlib
import re
import sys
import tempfile
import textwrap

MARKER = re.compile(r"<!-- from: ([^#\s]+)#([\w-]+) -->")
FENCE = re.compile(r"^(\s*)```\s*(cpp|c\+\+|cc|cxx)\b", re.IGNORECASE)
NAMED = re.compile(r"`((?:include|lib|testing|test|bench|examples|scripts|docs|cmake)/[\w./-]+\.(?:cpp|hpp|md|py|txt|cmake))`")
LINKED = re.compile(r"\]\((?!\w+:)([^)#\s]+)(?:#[^)]*)?\)")
COMPILED = ("examples/", "test/", "testing/", "bench/", "include/", "lib/")


class Bad(Exception):
    pass


def region(root, name, label):
    path = root / name
    if not name.startswith(COMPILED) or path.suffix not in (".cpp", ".hpp"):
        raise Bad(f"{name} is not a file that the build compiles")
    if not path.is_file():
        raise Bad(f"{name} does not exist")
    lines = path.read_text(encoding="utf-8").splitlines()
    begins = [i for i, line in enumerate(lines) if line.strip() == f"// [{label}]"]
    ends = [i for i, line in enumerate(lines) if line.strip() == f"// [/{label}]"]
    if len(begins) != 1 or len(ends) != 1 or begins[0] > ends[0]:
        raise Bad(f"{name} has no region [{label}], or more than one")
    inner = [line for line in lines[begins[0] + 1 : ends[0]] if not re.fullmatch(r"\s*// \[/?[\w-]+\]\s*", line)]
    return textwrap.dedent("\n".join(inner)).strip("\n").splitlines()


def blocks(lines):
    """(index of the line behind the opening fence, index of the closing fence, marker or None) of the C++ blocks."""
    inside, start, found = None, 0, []
    for i, line in enumerate(lines):
        if inside is None and line.strip().startswith("```"):
            inside, start = bool(FENCE.match(line)), i + 1
        elif inside is not None and line.strip() == "```":
            if inside:
                before = [text for text in lines[: start - 1] if text.strip()]
                marker = MARKER.fullmatch(before[-1].strip()) if before else None
                found.append((start, i, marker))
            inside = None
    if inside is not None:
        raise Bad(f"line {start}: the block is not closed")
    return found


def rewritten(root, path):
    """The lines as they should be, the faults, and the number of blocks."""
    lines, faults = path.read_text(encoding="utf-8").splitlines(), []
    name = path.relative_to(root).as_posix()
    try:
        found = blocks(lines)
    except Bad as bad:
        return lines, [f"{name}: {bad}"], 0
    for i, line in enumerate(lines, 1):
        missing = [one for one in NAMED.findall(line) if not (root / one).exists()]
        missing += [one for one in LINKED.findall(line) if not (path.parent / one).exists()]
        faults += [f"{name}:{i}: there is no {one}" for one in reversed(missing)]
    faults.reverse()
    for start, end, marker in reversed(found):
        try:
            if not marker:
                raise Bad("the block does not say from which compiled file it is")
            text = region(root, *marker.groups())
            if lines[start:end] != text:
                faults.append(f"{name}:{start}: differs from {marker[1]}#{marker[2]}; scripts/update-docs copies it")
                lines[start:end] = text
        except Bad as bad:
            faults.append(f"{name}:{start}: {bad}")
    return lines, faults[::-1], len(found)


def pages(root):
    return [page for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))] if page.is_file()]


def check(root):
    faults, count = [], 0
    for page in pages(root):
        _, more, found = rewritten(root, page)
        faults += more
        count += found
    return faults, count


def update(root):
    for page in pages(root):
        lines, _, _ = rewritten(root, page)
        text = "\n".join(lines) + "\n"
        if text != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")
    return check(root)


SOURCE = "int main() {\n  // [take]\n  // [inner]\n  go();\n  // [/inner]\n  if (x)\n    stop();\n  // [/take]\n}\n"
GOOD = "<!-- from: examples/a.cpp#take -->\n```cpp\ngo();\nif (x)\n  stop();\n```\n"
CASES = [
    (GOOD, None),
    ("```sh\nmake\n```\n" + GOOD, None),
    (GOOD.replace("go();", "leave();"), "differs"),
    (GOOD.replace("<!-- from: examples/a.cpp#take -->", "An example:"), "does not say"),
    (GOOD.replace("#take", "#give"), "no region"),
    (GOOD.replace("a.cpp", "b.cpp"), "does not exist"),
    (GOOD.replace("examples/a.cpp", "docs/a.cpp"), "not a file that the build compiles"),
    (GOOD.removesuffix("```\n"), "not closed"),
    (GOOD + "`examples/a.cpp` and [it](examples/a.cpp#L1), [elsewhere](https://a.example/b)\n", None),
    (GOOD + "`examples/b.cpp`\n", "there is no examples/b.cpp"),
    (GOOD + "[it](examples/b.cpp)\n", "there is no examples/b.cpp"),
]


def self_test():
    for page, complaint in CASES:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "examples").mkdir()
            (root / "examples/a.cpp").write_text(SOURCE, encoding="utf-8")
            (root / "README.md").write_text(page, encoding="utf-8")
            faults, _ = check(root)
            if complaint is None and faults or complaint and (len(faults) != 1 or complaint not in faults[0]):
                sys.exit(f"expected {complaint!r}, got {faults} for:\n{page}")
            if complaint == "differs" and update(root)[0]:
                sys.exit("--update did not mend the page")
    print(f"{len(CASES)} pages judged rightly")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    actions = {"--check": check, "--update": update}
    if len(sys.argv) != 3 or sys.argv[1] not in actions:
        print(__doc__, file=sys.stderr)
        return sys.exit(2)
    faults, count = actions[sys.argv[1]](pathlib.Path(sys.argv[2]))
    print(*faults, f"{count} blocks, {len(faults)} faults", sep="\n")
    if faults or count == 0:
        sys.exit(1)


main()
