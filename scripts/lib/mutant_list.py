"""The list of mutants, test/mutants.txt: its form stands at its head. Which file a change belongs to is found by its old text."""

import os
import re

LIST = "test/mutants.txt"
HEADING = re.compile(r"([a-z0-9-]+)(?: \[([^]]+)\])?: (\S.*)")
NAMED = re.compile(r"\blib/[\w/]+\.[ch]pp\b")
TARGETS = {
    "unit": "latchkey_unit_tests",
    "simulation": "latchkey_simulate",
    "server": "latchkey_server_tests",
}


class Broken(Exception):
    """Not a mutant that survived, but one that could not be tried."""


def texts(lines):
    """The old text and the new one: what is marked - or < goes, + or > comes, a space stays."""
    return ["".join(line[1:] + ("" if line[0] in "<>" else "\n") for line in lines if line[0] in marks)
            for marks in (" -<", " +>")]


class Mutant:
    def __init__(self, heading):
        self.name, runs, self.about = heading.groups()
        self.runs = re.split(", *", runs) if runs else ["unit", "simulation"]
        self.changes = []
        self.lines = []  # of the change that is being read

    def sources(self, library):
        """What it makes of which files."""
        made = {}
        for old, new in self.changes:
            found = [file for file, text in library.items() for _ in range(text.count(old))]
            if len(found) != 1:
                raise Broken(f"this text is in lib/ {len(found)} times, not once:\n{old}")
            made[found[0]] = made.get(found[0], library[found[0]]).replace(old, new)
        return made


def parsed(text):
    """The mutants of a list. Broken says in which line it is none."""
    found, mutant = [], None
    for number, line in enumerate(text.split("\n") + [""], 1):
        try:
            if line in ("", "@") and mutant:
                ended(mutant)
                mutant = mutant if line else None
            elif mutant:
                expect(line[0] in " -+<>", "a line of a change begins with -, +, <, > or a space")
                mutant.lines.append(line)
            elif line and line[0] != "#":
                mutant = begun(line)
                expect(mutant.name not in [other.name for other in found], f"{mutant.name} is there already")
                found.append(mutant)
        except Broken as why:
            raise Broken(f"{LIST}:{number}: {why}") from None
    return found


def expect(met, what):
    if not met:
        raise Broken(what)


def begun(line):
    heading = HEADING.fullmatch(line)
    expect(heading, "not `name: text` or `name [runs]: text`")
    mutant = Mutant(heading)
    for one in mutant.runs:
        expect(one.partition(" ")[0] in TARGETS, f"{one} is none of {', '.join(TARGETS)}")
    return mutant


def ended(mutant):
    """One change more is whole."""
    old, new = texts(mutant.lines)
    expect(old, f"{mutant.name} does not say what it changes")
    expect(old != new, f"{mutant.name} changes nothing")
    mutant.changes.append((old, new))
    mutant.lines = []


def listed():
    with open(LIST, encoding="utf-8") as file:
        return parsed(file.read())


def library():
    found = {}
    for folder, _, files in os.walk("lib"):
        for file in files:
            if file.endswith((".cpp", ".hpp")):
                path = os.path.join(folder, file)
                with open(path, encoding="utf-8", errors="replace") as source:
                    found[path] = source.read()
    return found


def misplaced(every, known):
    """Whatever was asked for, each has its place: a change that takes one along is told so at once."""
    for mutant in every:
        try:
            changed = mutant.sources(known)
        except Broken as why:
            yield f"{mutant.name}: {why}"
            continue
        for named in NAMED.findall(mutant.about):
            if named not in changed:
                yield f"{mutant.name}: changes {', '.join(changed)}, not {named}"
