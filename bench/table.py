"""table.py FILE... : one table of the rows that the files hold; the exit code says whether every target was kept.

With --peers FILE, what scripts/bench peers measured takes the place of the missing references. --json FILE writes all
of it as one file, --markdown prints the table as docs/performance.md shows it.
Exit code: 0 every target was kept, 1 one was missed or a row could not be measured. What is missing because the peers
did not run counts as neither.
"""

import argparse
import json
import sys

PEERS = "scripts/bench peers"
# What a row is compared with -> the work that a peer did.
WORK = {"Redisson, 1,000 callers": "crowd", "Redisson, 8 threads": "one_lock", "Redisson's renewals": "renewals"}


def load(names):
    merged = {"machine": "", "rounds": 0, "rows": [], "curves": []}
    for name in names:
        with open(name, encoding="utf-8") as file:
            found = json.load(file)
        for key in ("machine", "rounds"):
            merged[key] = merged[key] or found.get(key)
        merged["rows"] += found["rows"]
        merged["curves"] += found["curves"]
    return merged


def judge(row):
    value = row["ratio"] if row["against"] else row["figure"]
    if value is None:
        return "missing"
    kept = (row["most"] is None or value <= row["most"]) and (row["least"] is None or value >= row["least"])
    return "kept" if kept else "MISSED"


def fill_in(rows, peers):
    for row in rows:
        reference = peers.get(WORK.get(row["against"]))
        if row["figure"] is None or not reference:
            continue
        row.update(reference=reference, ratio=row["figure"] / reference, missing="")
        row["verdict"] = judge(row)


def redisson(name):
    with open(name, encoding="utf-8") as file:
        found = json.load(file)["peers"]
    return next((one["work"] for one in found if one["name"].startswith("Redisson")), {})


def number(value):
    if value is None:
        return ""
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def cells(row):
    figure = f"{number(row['figure'])} {row['unit']}".strip()
    reference = f"{number(row['reference'])} ({row['against']})" if row["reference"] else row["against"]
    target = " and ".join(word + " " + number(row[key]) for word, key in (("at most", "most"), ("at least", "least"))
                          if row[key] is not None)
    verdict = row["verdict"] + (": " + row["missing"] if row["missing"] else "")
    if row["note"]:
        verdict += f" ({row['note']})"
    return [row["group"], row["name"], figure, reference, f"{row['ratio']:.2f}" if row["ratio"] else "", target, verdict]


def print_table(rows, markdown):
    lines = [["group", "row", "figure", "beside", "ratio", "target", "verdict"]] + [cells(row) for row in rows]
    if markdown:
        lines.insert(1, ["---"] * len(lines[0]))
        for line in lines:
            print("| " + " | ".join(line) + " |")
        return
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--peers")
    parser.add_argument("--json")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    found = load(options.files)
    if options.peers:
        fill_in(found["rows"], redisson(options.peers))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
    rows = found["rows"]
    print_table(rows, options.markdown)
    missed = [row for row in rows if row["verdict"] == "MISSED"]
    absent = [row for row in rows if row["verdict"] == "missing" and row["missing"] != PEERS]
    waiting = [row for row in rows if row["missing"] == PEERS]
    kept = sum(row["verdict"] == "kept" for row in rows)
    print(f"\n{kept} kept, {len(missed)} missed, {len(absent) + len(waiting)} missing.")
    if waiting:
        print(f"{len(waiting)} of the missing ones need {PEERS}.")
    sys.exit(1 if missed or absent else 0)


main()
