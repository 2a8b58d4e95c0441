"""table.py FOLDER: prints what the tests of group interop wrote there as a table, kind by check. Fails if a cell is
empty or wrong."""

import pathlib
import sys

CHECKS = {
    "1 exclusion": "who holds it keeps the other library out, after a re-entry too, and both see the same",
    "1 odd names": "the same under names with spaces, UTF-8, braces, of 1 KiB",
    "2 wake-up": "a release wakes a waiter of the other library by a message",
    "3 watchdog": "the watchdog keeps a hold for three periods against the other library's tries",
    "4 crash": "what a killed process held is the other library's when the lease ends, and not before",
    "5 force": "an unlock by force by the first is a loss to the second",
    "6 state": "after each step of a history the server shows the same, whichever library made the step",
}
KINDS = [
    "lock",
]
DIRECTIONS = {"Redisson > latchkey": "R>l", "latchkey > Redisson": "l>R"}


def read(folder):
    cells = {}
    none = {}
    for path in sorted(pathlib.Path(folder).glob("*.cells")):
        for line in path.read_text(encoding="utf-8").splitlines():
            check, kind, direction, verdict, remark = line.split("\t", 4)
            if verdict == "none":
                none[check, kind] = remark
            elif cells.get((check, kind, direction), ("yes",))[0] == "yes":
                cells[check, kind, direction] = verdict, remark
    return cells, none


def word(cells, none, check, kind, direction):
    if (check, kind) in none:
        return "-"
    verdict, remark = cells.get((check, kind, direction), ("EMPTY", ""))
    return remark.removeprefix("median ") if verdict == "yes" and remark.startswith("median ") else verdict


def main():
    cells, none = read(sys.argv[1])
    checks = list(CHECKS)
    rows = [["", ""] + checks]
    for kind in KINDS:
        for direction, short in DIRECTIONS.items():
            rows.append([kind, short] + [word(cells, none, check, kind, direction) for check in checks])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("| " + " | ".join(text.ljust(width) for text, width in zip(row, widths)) + " |")
        if row is rows[0]:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    print("\nR>l: Redisson holds, latchkey is kept out, woken, ...; l>R: the other way round. Times are medians.")
    for check, meaning in CHECKS.items():
        print(f"* {check}: {meaning}")
    for (check, kind), why in none.items():
        print(f"* no {check} of {kind}: {why}")
    for (check, kind, direction), (verdict, remark) in cells.items():
        if verdict != "yes":
            print(f"WRONG: {check}, {kind}, {direction}: {remark}")
    unknown = {key[:2] for key in cells} - {(check, kind) for check in CHECKS for kind in KINDS}
    if unknown:
        print(f"not in the table: {sorted(unknown)}")
    bad = [text for row in rows for text in row if text in ("EMPTY", "NO")]
    sys.exit(1 if bad or unknown else 0)


main()
