"""table.py ROWS PEERS: the same work by latchkey and by other libraries, one line each."""

import json
import sys


def load(name):
    with open(name, encoding="utf-8") as file:
        return json.load(file)


def own_line(rows):
    def figure(group, name):
        return next((row["figure"] for row in rows if row["group"] == group and row["name"].startswith(name)), None)

    return {"name": "latchkey", "crowd_of": "1,000 coroutines",
            "work": {"pair": figure("pair", "one pair after the other, p50"),
                     "crowd": figure("crowd", "1,000 coroutines"),
                     "one_lock": figure("one_lock", "8 threads: acquisitions"),
                     "one_lock_jain": figure("one_lock", "8 threads: Jain"),
                     "renewals": figure("holds", "CPU of the server")}}


def cell(value):
    return "" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main():
    lines = [["library", "free pair p50, us", "many locks, pairs/s", "by", "one lock, 8 callers, 1/s", "Jain index",
              "server CPU for 100,000 holds, %"]]
    found = load(sys.argv[2])
    for one in [own_line(load(sys.argv[1])["rows"])] + found["peers"]:
        work = one["work"]
        lines.append([one["name"], cell(work.get("pair")), cell(work.get("crowd")), one["crowd_of"],
                      cell(work.get("one_lock")), cell(work.get("one_lock_jain")), cell(work.get("renewals"))])
    for one in found["missing"]:
        lines.append([one["name"], "missing: " + one["why"]] + [""] * (len(lines[0]) - 2))
    lines.insert(1, ["---"] * len(lines[0]))
    print()
    for line in lines:
        print("| " + " | ".join(line) + " |")


main()
