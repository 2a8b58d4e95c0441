"""table.py FOLDER: prints what the tests of group interop wrote there as a table, kind by check. Fails if a cell is
empty or wrong."""

import pathlib
import sys

CHECKS = {
    "1 exclusion": "who holds it keeps the other library out, after a re-entry too, and both see the same",
    "1 odd names": "the same under names with spaces, UTF-8, braces, of 1 KiB",
    "2 wake-up": "a release wakes a waiter of the other library at once, the hint being 30 s away",
    "3 watchdog": "the watchdog keeps a hold for three periods against the other library's tries",
    "4 crash": "what a killed process held is the other library's when the lease ends, and not before",
    "5 force": "an unlock by force by the first is a loss to the second",
    "6 state": "after each step of a history the server shows the same, whichever library made the step",
    "7 order": "waiters of both stand in one queue and are served in the order of their arrival",
}
KINDS = [
    "lock",
    "fair_lock",
    "non_reentrant_lock",
    "spin_lock",
    "fenced_lock",
    "read_lock",
    "write_lock",
    "multi_lock",
    "red_lock",
    "semaphore",
    "permit_semaphore",
    "count_down_latch",
]
# Redisson of other versions: the short list.
BRIEF = ("lock", "fair_lock", "read_lock", "write_lock")
VERSIONS = pathlib.Path(__file__).with_name("other-versions").read_text(encoding="utf-8").split()
OTHERS = [f"{kind} {version}" for version in VERSIONS for kind in BRIEF]
DIRECTIONS = {"Redisson > latchkey": "R>l", "latchkey > Redisson": "l>R"}
# Both libraries at once: check, kind, whose connections are killed.
CROWDS = [
    ("7 contention", "lock", "nobody's"),
    ("7 contention", "fair_lock", "nobody's"),
    ("7 contention", "write_lock", "nobody's"),
    ("7 contention", "lock", "latchkey's"),
    ("7 contention", "fair_lock", "latchkey's"),
    ("7 contention", "write_lock", "latchkey's"),
    ("7 contention", "lock", "Redisson's"),
    ("7 contention", "fair_lock", "Redisson's"),
    ("7 contention", "write_lock", "Redisson's"),
]

# What holds the plain lock in other languages. None of them has a watchdog.
PEERS = ("redis-py", "redsync", "redlock")
PEER_CHECKS = {
    "exclusion": "who holds it keeps the other out, and nobody releases what the other holds",
    "odd names": "the same under odd names",
    "waiting": "from a release to the return of the other's waiter, which polls",
    "extension": "a lease of 600 ms that is extended to 1500 ms keeps the other out for so long, and no longer",
    "watchdog": "latchkey's keeps its hold for longer than a lease",
}


# The short list has no histories, and only one kind has a queue.
def asked(check, kind):
    return not (check == "6 state" and kind in OTHERS) and (check != "7 order" or kind.startswith("fair_lock"))


def ways(peer):
    return {f"{peer} > latchkey": "P>l", f"latchkey > {peer}": "l>P"}


def has(peer, check, direction):
    return check != "watchdog" or direction.startswith("latchkey")


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
    if (check, kind) in none or not asked(check, kind):
        return "-"
    verdict, remark = cells.get((check, kind, direction), ("EMPTY", ""))
    timed = remark.startswith("median ") or check == "waiting"
    return remark.removeprefix("median ") if verdict == "yes" and timed else verdict


def show(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("| " + " | ".join(text.ljust(width) for text, width in zip(row, widths)) + " |")
        if row is rows[0]:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")


def main():
    cells, none = read(sys.argv[1])
    rows = [["kind", ""] + list(CHECKS)]
    for kind in KINDS:
        for direction, short in DIRECTIONS.items():
            rows.append([kind, short] + [word(cells, none, check, kind, direction) for check in CHECKS])
    for kind in OTHERS:
        for direction, short in DIRECTIONS.items():
            rows.append([kind, short] + [word(cells, none, check, kind, direction) for check in CHECKS])
    show(rows)
    print("\nR>l: Redisson holds, latchkey is kept out, woken, ...; l>R: the other way round. Times are medians.\n")
    crowd = [["two processes of each library", "connections killed", "exact", "turns"]]
    for check, kind, killed in CROWDS:
        verdict, remark = cells.get((check, kind, killed), ("EMPTY", ""))
        crowd.append([kind, killed, verdict, remark])
    show(crowd)
    print()
    plain = [["plain lock", ""] + list(PEER_CHECKS)]
    for peer in PEERS:
        verdict, version = cells.get(("version", peer, ""), ("EMPTY", "EMPTY"))
        for direction, short in ways(peer).items():
            words = [
                word(cells, none, check, peer, direction) if has(peer, check, direction) else "-"
                for check in PEER_CHECKS
            ]
            plain.append([f"{peer} {version}", short] + words)
    show(plain)
    print("\nP>l: the peer holds, latchkey is kept out, waits; l>P: the other way round.\n")
    for check, meaning in (CHECKS | PEER_CHECKS).items():
        print(f"* {check}: {meaning}")
    for (check, kind), why in sorted(item for item in none.items() if item[0][1] in KINDS):
        print(f"* no {check} of {kind}: {why}")
    for (check, kind, direction), (verdict, remark) in cells.items():
        if verdict != "yes":
            print(f"WRONG: {check}, {kind}, {direction}: {remark}")
    expected = {(check, kind, way) for check in CHECKS for kind in KINDS + OTHERS for way in DIRECTIONS} | set(CROWDS)
    expected |= {(check, peer, way) for check in PEER_CHECKS for peer in PEERS for way in ways(peer)}
    expected |= {("version", peer, "") for peer in PEERS}
    unknown = set(cells) - expected
    if unknown:
        print(f"not in the table: {sorted(unknown)}")
    bad = [text for row in rows + crowd + plain for text in row if "EMPTY" in text or text == "NO"]
    sys.exit(1 if bad or unknown else 0)


main()
