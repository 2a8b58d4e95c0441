"""mutants.py --check ROOT: every change in test/mutants.txt has its one place in lib/, in the file that its heading names;
every rule of the table in docs/safety.md that has a column for them has one.
mutants.py --self-test: shows that --check can fail, and that a list of another form is told so by its line.
"""

import os
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "scripts/lib"))
import mutant_list  # noqa: E402

GOOD = """# what this is
a-rule: Takes out a rule.
 before
-old
+new

two-rules [unit, server kind_fair_test]: Takes out: two.
<ol
>OL
@
-other {
-}
"""
SOURCES = {"a.cpp": "before\nold\n", "b.cpp": "other {\n}\n"}
# What is replaced in the list above, by what, and what is said of it.
WRONG_LISTS = [
    ("a-rule: T", "a-rule T", "2: not `name: text`"),
    ("a-rule: T", "A_rule: T", "2: not `name: text`"),
    ("Takes out a rule.", "", "2: not `name: text`"),
    ("-old\n", "old\n", "4: a line of a change begins with"),
    ("-old\n+new", " old", "5: a-rule changes nothing"),
    (" before\n-old\n", "", "4: a-rule does not say what it changes"),
    (" before\n-old\n+new\n", "", "3: a-rule does not say what it changes"),
    ("@\n", "@\n@\n", "11: two-rules does not say what it changes"),
    ("-other {\n-}\n", "", "11: two-rules does not say what it changes"),
    ("+new\n\n", "+new\n", "6: a line of a change begins with"),
    ("two-rules", "a-rule", "7: a-rule is there already"),
    ("[unit, server", "[unit, , server", "7:  is none of unit, simulation, server"),
    ("server kind", "sever kind", "7: sever kind_fair_test is none of unit, simulation, server"),
]
WRONG_SOURCES = [
    ("old\n", "else\n", "a-rule: this text is in lib/ 0 times, not once:\nbefore\nold\n"),
    ("old\n", "old\nbefore\nold\n", "a-rule: this text is in lib/ 2 times, not once:\nbefore\nold\n"),
]

RULES = "| rule | function | mutant |"


def unguarded(text, names):
    """Rules that name no mutant, or one that is not there."""
    for row in text.split(RULES)[1].split("\n\n")[0].splitlines()[2:]:
        rule, _, mutants = (cell.strip() for cell in row.strip("|").split("|"))
        lost = set(re.findall("`([^`]*)`", mutants) or [mutants]) - set(names)
        if lost:
            yield f"docs/safety.md, rule {rule}: no such mutant: {', '.join(sorted(lost))}"


def said_of(text):
    try:
        mutant_list.parsed(text)
    except mutant_list.Broken as why:
        return str(why)
    return "nothing"


def self_test():
    every = mutant_list.parsed(GOOD)
    assert [(one.name, one.runs, one.about) for one in every] == [
        ("a-rule", ["unit", "simulation"], "Takes out a rule."),
        ("two-rules", ["unit", "server kind_fair_test"], "Takes out: two.")]
    assert every[0].sources(SOURCES) == {"a.cpp": "before\nnew\n"}
    assert every[1].changes == [("ol", "OL"), ("other {\n}\n", "")]
    for old, new, expected in WRONG_LISTS:
        assert old in GOOD
        said = said_of(GOOD.replace(old, new, 1))
        assert said.startswith(f"{mutant_list.LIST}:{expected}"), f"{expected}, not: {said}"
    for old, new, expected in WRONG_SOURCES:
        changed = {"a.cpp": SOURCES["a.cpp"].replace(old, new), "b.cpp": SOURCES["b.cpp"]}
        assert expected in list(mutant_list.misplaced(every, changed)), expected
    for named, said in [("lib/a.cpp", []), ("lib/b.cpp", ["a-rule: changes lib/a.cpp, not lib/b.cpp"])]:
        one = mutant_list.parsed(GOOD.replace("a rule.", f"a rule. {named}."))[:1]
        assert list(mutant_list.misplaced(one, {"lib/a.cpp": SOURCES["a.cpp"]})) == said
    rows = f"{RULES}\n| --- | --- | --- |\n| 1 | `a::b` | `x`, `y` |\n| 2 | `a::c` | |\n| 3 | `a::d` | `x` |\n\n| 4 | | |"
    assert list(unguarded(rows, ["x"])) == ["docs/safety.md, rule 1: no such mutant: y", "docs/safety.md, rule 2: no such mutant: "]


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 3 or sys.argv[1] != "--check":
        sys.exit(__doc__)
    os.chdir(sys.argv[2])
    try:
        every = mutant_list.listed()
        rules = pathlib.Path("docs/safety.md").read_text(encoding="utf-8")
        found = [*mutant_list.misplaced(every, mutant_list.library()), *unguarded(rules, [one.name for one in every])]
    except mutant_list.Broken as why:
        found = [str(why)]
    sys.exit("\n".join(found) or None)


if __name__ == "__main__":
    main()
