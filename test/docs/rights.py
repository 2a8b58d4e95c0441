"""rights.py --check ROOT: the table of rights in README.md is that of test/support/rights.cpp, which a test uses.
rights.py --update ROOT: makes it so. rights.py --self-test: shows that --check can fail."""

import pathlib
import re
import sys
import tempfile

SOURCE = "test/support/rights.cpp"
BEGIN, END = "<!-- rights: test/support/rights.cpp -->", "<!-- /rights -->"
ROW = re.compile(r'\{((?:\s*"[^"]*"\s*,?)+)\}')
TEXT = re.compile(r'"([^"]*)"(\s*)(,?)')


def fields(row):
    """Adjacent literals are one, as in C++."""
    made = [""]
    for text, _, comma in TEXT.findall(row):
        made[-1] += text
        if comma:
            made.append("")
    return made


def table(root):
    source = (root / SOURCE).read_text(encoding="utf-8")
    inner = source.split("// [rights]")[1].split("// [/rights]")[0]
    rows = [fields(match[1]) for match in ROW.finditer(inner)]
    if len(rows) < 2 or any(len(row) != 4 for row in rows):
        sys.exit(f"{SOURCE}: the table cannot be read: {rows}")
    lines = ["| for | commands | keys | channels |", "| --- | --- | --- | --- |"]
    for kind, keys, channels, commands in rows:
        signed = (("+", commands), ("~", keys), ("&", channels))
        shown = [" ".join(sign + word.replace("|", "\\|") for word in text.split()) for sign, text in signed]
        cells = [f"`{text}`" if text else "" for text in shown]
        lines.append(f"| {f'`{kind}`' if kind.startswith('get_') else kind} | " + " | ".join(cells) + " |")
    return lines


def rewritten(root):
    text = (root / "README.md").read_text(encoding="utf-8")
    before, found, rest = text.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not found or not closed:
        sys.exit(f"README.md has no place for the table: {BEGIN} ... {END}")
    return text, before + BEGIN + "\n" + "\n".join(table(root)) + "\n" + END + after


def check(root):
    text, wanted = rewritten(root)
    return text == wanted


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "test/support").mkdir(parents=True)
        source = '// [rights]\n{"all", "", "",\n "a b "\n "c"},\n{"get_x", "NAME", "ch:{NAME}", "set"},\n// [/rights]\n'
        (root / SOURCE).write_text(source, encoding="utf-8")
        head = "| for | commands | keys | channels |\n| --- | --- | --- | --- |\n"
        rows = "| all | `+a +b +c` |  |  |\n| `get_x` | `+set` | `~NAME` | `&ch:{NAME}` |\n"
        page = f"{BEGIN}\n{head}{rows}{END}\n"
        for text, good in ((page, True), (page.replace("+set", "+get"), False), (page.replace("| all", "| any"), False)):
            (root / "README.md").write_text(text, encoding="utf-8")
            if check(root) != good:
                sys.exit(f"judged wrongly:\n{text}\nwanted:\n{rewritten(root)[1]}")
    print("3 pages judged rightly")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    what, root = sys.argv[1], pathlib.Path(sys.argv[2])
    if what == "--update":
        (root / "README.md").write_text(rewritten(root)[1], encoding="utf-8")
    elif not check(root):
        sys.exit("README.md: the table of rights differs from test/support/rights.cpp; scripts/update-docs copies it")


main()
