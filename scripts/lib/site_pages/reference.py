"""Pages that are made of what programs say or tables have: the command line, exit codes, metrics."""

import re
import subprocess


def said(tool, *words):
    return subprocess.run([tool, *words], capture_output=True, text=True, check=True, timeout=60).stdout


def rows(block):
    """(left, right) of the lines of a table that --help prints: two blanks, words, and what they mean from column 26 on."""
    found = []
    for line in block.splitlines():
        if len(line) - len(line.lstrip()) >= 20 and found:
            found[-1][1] += " " + line.strip()
        elif line.strip():
            left, _, right = line.strip().partition("  ")
            found.append([left.strip(), right.strip()])
    return found


def cells(text):
    """Text that is printed as it is: no markup, no row's end."""
    return re.sub(r"([\\*_<>\[\]`|])", r"\\\1", text)


def table(block, head):
    lines = [f"| {head} | meaning |", "| --- | --- |"]
    lines += [f"| `{left}` | {cells(right)} |" for left, right in rows(block)]
    return "\n".join(lines)


def chapter(text, title):
    found = re.search(rf"^{title}:\n(.*?)(?:\n\n|\Z)", text, re.M | re.S)
    return found[1] if found else ""


def command_line(tool):
    general = said(tool, "--help")
    names = re.findall(r"^  ([a-z-]+)  ", chapter(general, r"Subcommands \(.*\)"), re.M)
    made = ["# Command line", "", "Made from the table that `latchkey --help`, `latchkey(1)` and the completions are made from.", "",
            "```", *re.findall(r"^Usage: (.*)$", general, re.M), "```", "",
            "Durations are `250ms`, `30s`, `1m30s`, `2h`, `1d` or `0.5s`; a number is seconds.", ""]
    for name in names:
        made += subcommand(name, said(tool, name, "--help"))
    made += ["## Options of all", "", table(chapter(general, "Options"), "option"), "",
             "## Environment", "", table(chapter(general, "Environment"), "variable"), "",
             "## Exit codes", "", "See [errors and exit codes](errors.md#exit-codes).", ""]
    return "\n".join(made)


def subcommand(name, text):
    usage, _, rest = text.partition("\n\n")
    own = chapter(text, "Options")
    prose = re.split(r"^(?:Options|Common options):$", rest, maxsplit=1, flags=re.M)[0].strip()
    lines = [f"## {name}", "", "```", re.sub(r"^Usage: ", "", usage), "```", "", cells_of(prose), ""]
    return [*lines, table(own, "option"), ""] if own else lines


def cells_of(prose):
    """One paragraph; a line that is a command is code."""
    made, paragraph = [], []
    for line in [*prose.splitlines(), ""]:
        if re.match(r"\s*(\w+=\$\(|latchkey )", line):
            made += [cells(" ".join(paragraph)), f"```\n{line.strip()}\n```"]
            paragraph = []
        else:
            paragraph.append(line.strip())
    return "\n\n".join(filter(str.strip, [*made, cells(" ".join(paragraph))]))


def exit_codes(tool):
    return table(chapter(said(tool, "--help"), "Exit codes"), "code")


def metrics(root):
    """From the tables that the library writes them from."""
    source = (root / "lib/api/prometheus.cpp").read_text(encoding="utf-8")
    made = ["# Metrics", "", "What `to_prometheus` and `to_openmetrics` write; see [how to use them](metrics.md).", "",
            "| metric | type | labels | meaning |", "| --- | --- | --- | --- |"]
    for block in re.split(r"\nconstexpr ", source)[1:]:
        head = block.splitlines()[0]  # whose figures they are
        counter = "counters" in head
        for name, text in re.findall(r'\{\{"(\w+)", "([^"]*)"', block):
            made.append(f"| `latchkey_{name}{'_total' if counter else ''}` | {'counter' if counter else 'gauge'} | "
                        f"{'`kind`' if 'kind_stats' in head else '`server`' if 'node_stats' in head else ''} | {text} |")
    for name, text in re.findall(r'out\.times\(\{"(\w+)",\s*"([^"]*)"', source):
        made.append(f"| `latchkey_{name}` | histogram | | {text} |")
    for name, text in re.findall(r'out\.info\(\{"(\w+)",\s*"([^"]*)"', source):
        made.append(f"| `latchkey_{name}_info` | info | `version`, `boost` | {text} |")
    made += ["", "`kind` is the kind of lock: `lock`, `fair_lock` ...; `server` is its address. No metric carries a lock's name. Times are seconds; the histograms have a "
             "bucket for every second power of two from 16 µs to 67.1 s.", ""]
    return "\n".join(made)
