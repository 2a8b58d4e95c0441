"""peers_plot.py --check ROOT: the picture of README.md shows what the table of docs/performance.md says, each library with its figures.
peers_plot.py --self-test ROOT: shows that this can fail."""

import pathlib
import re
import sys

HEAD = "| library | free pair p50, us | many locks, pairs/s |"


def rows(page):
    for line in page.partition(HEAD)[2].split("\n\n")[0].splitlines()[2:]:
        name, pair, rate = (cell.strip() for cell in line.split("|")[1:4])
        if pair and rate and not pair.startswith("missing"):
            yield name, pair, rate


def missing(page, picture):
    """Figures of the table that the picture has not; it keeps its words as words."""
    words = [text.strip() for text in re.findall(r">([^<>]+)</text>", picture)]
    return [f"{row[0]}: {word}" for row in rows(page) for word in row if words.count(word) < (2 if word == row[0] else 1)]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[2])
    page = (root / "docs/performance.md").read_text(encoding="utf-8")
    picture = (root / "docs/plots/peers.svg").read_text(encoding="utf-8")
    if sys.argv[1] == "--self-test":
        figure = next(rows(page))[1]
        if not missing(page, picture.replace(f">{figure}<", ">1.23<")) or not missing(page, ""):
            sys.exit("a wrong picture was not noticed")
        return print("two wrong pictures noticed")
    lost = missing(page, picture)
    if lost or len(list(rows(page))) < 3:
        sys.exit(f"docs/plots/peers.svg is not of the table in docs/performance.md (scripts/update-docs draws it): {lost}")
    return print(f"{len(list(rows(page)))} libraries, as in the table")


main()
