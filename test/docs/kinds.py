"""kinds.py --check ROOT: every kind of lib/wire/kinds.hpp stands at every place of the check-list in
docs/adding-a-kind.md. kinds.py --self-test ROOT: shows that --check can fail, at every place of that list.

A row of the list has four cells: files of which one is enough (`*` stands for anything), the text that stands there, what
it is good for, and the kinds of which it does not stand there. KIND, GETTER and NAME in the text are those of the kind:
`non_reentrant`, `get_non_reentrant_lock`, `non_reentrant_lock`. A text that begins with ## is a heading, whose case and
signs do not matter. Comments of C++ do not count.
"""

import pathlib
import re
import shutil
import sys
import tempfile

DECLARATIONS = ("lib/wire/kind.hpp", "lib/wire/kinds.hpp")
GETTERS = "lib/api/client.cpp"
PAGE = "docs/adding-a-kind.md"
BEGIN, END = "<!-- check-list -->", "<!-- /check-list -->"
DECLARED = re.compile(r"^(?:kind const&|kind_ptr) (\w+)_kind\(", re.MULTILINE)
MEMBER = re.compile(r"^\S.* client::(\w+)\(")
QUOTED = re.compile(r"`([^`]+)`")


class Bad(Exception):
    pass


def code(path):
    text = path.read_text(encoding="utf-8")
    return re.sub(r"//.*", "", text) if path.suffix in (".cpp", ".hpp") else text


def kinds(root):
    """The name of each kind, and the getter that uses it, or None."""
    names = [name for file in DECLARATIONS for name in DECLARED.findall(code(root / file))]
    mentioned = {name for file in DECLARATIONS for name in re.findall(r"\b(\w+)_kind\(", code(root / file))}
    if not names or mentioned != set(names):
        raise Bad(f"the declarations of {', '.join(DECLARATIONS)} cannot be read: {sorted(mentioned ^ set(names))}")
    found, member = dict.fromkeys(names), None
    for line in code(root / GETTERS).splitlines():
        match = MEMBER.match(line)
        member = match[1] if match else member
        for name in re.findall(r"\b(\w+)_kind\(", line):
            if member and member.startswith("get_") and name in found:
                found[name] = member
    return found


def rows(root):
    """Of each row the files, the text and the exceptions."""
    _, begun, rest = (root / PAGE).read_text(encoding="utf-8").partition(BEGIN)
    inside, ended, _ = rest.partition(END)
    lines = [line for line in inside.splitlines() if line.strip()][2:]
    if not begun or not ended or not lines:
        raise Bad(f"{PAGE} has no check-list: {BEGIN} ... {END}")
    made = []
    for line in lines:
        cells = [cell.strip() for cell in line.strip().strip("|").split(" |")]
        places, texts = (QUOTED.findall(cell) for cell in cells[:2])
        if len(cells) != 4 or not places or len(texts) != 1:
            raise Bad(f"{PAGE}: not a row of the check-list: {line}")
        # What stands behind the colon says why, and may quote other things.
        made.append((places, texts[0], QUOTED.findall(cells[3].partition(":")[0])))
    return made


def plain(heading):
    return re.sub(r"[^a-z0-9]", "", heading.lower())


def stands(path, text, name, getter):
    filled = text.replace("KIND", name).replace("GETTER", getter).replace("NAME", getter.removeprefix("get_"))
    if text.startswith("## "):
        headings = re.findall(r"^#+ (.*)", path.read_text(encoding="utf-8"), re.MULTILINE)
        return plain(filled) in map(plain, headings)
    return re.search(rf"(?<!\w){re.escape(filled)}(?!\w)", code(path)) is not None


def check(root):
    try:
        known, list_of_places = kinds(root), rows(root)
    except Bad as bad:
        return [str(bad)], 0
    faults = []
    for places, text, exceptions in list_of_places:
        files = {place: sorted(root.glob(place)) for place in places}
        faults += [f"{PAGE}: there is no {place}" for place, found in files.items() if not found]
        faults += [f"{PAGE}: there is no kind {name}" for name in exceptions if name not in known]
        where = " or ".join(places)
        for name, getter in known.items():
            there = any(stands(file, text, name, getter or f"get_{name}") for found in files.values() for file in found)
            if there and name in exceptions:
                faults.append(f"{name}: stands in {where} although {PAGE} says that it does not")
            elif not there and name not in exceptions:
                faults.append(f"{name}: missing in {where} ({text})")
    return faults, len(known) * len(list_of_places)


# --- can it fail? ---

SMALL = {
    "lib/wire/kind.hpp": "class kind;\nkind const& first_kind();\n",
    "lib/wire/kinds.hpp": "kind const& second_kind(bool seeded = false);  // see third_kind()\n"
                          "kind_ptr bounded_kind(int most);\n",
    GETTERS: "distributed_lock client::get_first_lock(std::string name) const {\n"
             "  return make_lock(std::move(name), detail::first_kind());\n}\n"
             "distributed_lock client::get_second_lock(std::string name) const {\n"
             "  return make_lock(std::move(name), detail::second_kind());\n}\n"
             "distributed_lock client::get_bounded_lock(std::string name, int most) const {\n"
             "  return make_lock(std::move(name), *detail::bounded_kind(most));\n}\n",
    "docs/kinds.md": "## First lock\n## Second/lock\n## Bounded-Lock\n",
    "test/a_test.cpp": "first_kind second_kind",
    "test/b_test.cpp": "bounded_kind // fourth_kind",
    "test/names.cpp": '"first_lock" "bounded_lock"',
    PAGE: f"{BEGIN}\n| place | there stands | so that | but not |\n| --- | --- | --- | --- |\n"
          f"| `{GETTERS}` | `KIND_kind` | a | |\n| `docs/kinds.md` | `## NAME` | b | |\n"
          "| `test/*_test.cpp` | `KIND_kind` | c | |\n"
          f'| `test/names.cpp` `docs/kinds.md` | `"NAME"` | d | `second`: for `first` reasons |\n{END}\n',
}
# A file, what is replaced in it by what, and words of each fault.
CHANGES = [
    (None, "", ""),
    ("lib/wire/kinds.hpp", "// see", "\nvoid", "cannot be read"),
    (GETTERS, "first_kind", "second_kind", "first: missing in lib/api/client.cpp", "(## NAME)",
     '("NAME")'),
    ("docs/kinds.md", "## Second/lock", "Second lock", "second: missing in docs/kinds.md"),
    ("test/b_test.cpp", "bounded_kind", "unbounded_kind", "bounded: missing in test/*_test.cpp"),
    ("test/b_test.cpp", "bounded_kind", "// bounded_kind", "bounded: missing in test/*_test.cpp"),
    ("test/a_test.cpp", "second_kind", "second_kinds", "second: missing in test/*_test.cpp"),
    ("test/names.cpp", '"first_lock"', "first_lock", "first: missing in test/names.cpp or docs/kinds.md"),
    ("test/names.cpp", "bounded", 'second_lock" "bounded', "second: stands in test/names.cpp"),
    (PAGE, "test/*_test.cpp", "test/*_test.cpp` `test/c.cpp", "there is no test/c.cpp"),
    (PAGE, "`second`:", "`second` `other`:", "there is no kind other"),
    (PAGE, "| b |", "b |", "not a row"),
    (PAGE, END, "", "has no check-list"),
]


def judge_small_trees():
    for changed, old, new, *words in CHANGES:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in SMALL.items():
                if name == changed and old not in text:
                    sys.exit(f"{name} has no {old}")
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text.replace(old, new, 1) if name == changed else text, encoding="utf-8")
            faults, _ = check(root)
            if len(faults) != len(words) or any(word not in fault for word, fault in zip(words, faults)):
                sys.exit(f"expected {words}, got {faults} after {old!r} became {new!r} in {changed}")
    print(f"{len(CHANGES)} trees judged rightly")


def judge_a_new_kind(root):
    """A kind that is only declared is missing at every place of the true list."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder)
        for name in {*DECLARATIONS, GETTERS, PAGE, *(place for row in rows(root) for place in row[0])}:
            for file in root.glob(name):
                target = copy / file.relative_to(root)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)
        with (copy / DECLARATIONS[1]).open("a", encoding="utf-8") as declarations:
            declarations.write("kind const& made_up_kind();\n")
        faults, _ = check(copy)
        wanted = [f"made_up: missing in {' or '.join(places)} ({text})" for places, text, _ in rows(root)]
        if faults != wanted:
            sys.exit(f"of a kind that is only declared these were expected:\n{wanted}\nand these found:\n{faults}")
    print(f"a kind that is only declared is missing at {len(wanted)} places")


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("--check", "--self-test"):
        print(__doc__, file=sys.stderr)
        return sys.exit(2)
    root = pathlib.Path(sys.argv[2])
    if sys.argv[1] == "--self-test":
        judge_small_trees()
        return judge_a_new_kind(root)
    faults, count = check(root)
    print(*faults, f"{count} places, {len(faults)} faults", sep="\n")
    if faults or count == 0:
        sys.exit(1)


main()
