"""plots.py FILE FOLDER: draws what scripts/bench measured, one SVG for each plot. Needs Matplotlib.
plots.py --peers PAGE FILE: draws the table of scripts/bench peers, as it stands in PAGE (docs/performance.md), into one picture."""

import json
import os
import re
import sys

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams["svg.hashsalt"] = "latchkey"  # the same data give the same file
matplotlib.rcParams["svg.fonttype"] = "none"  # words stay words: small files
from matplotlib import pyplot  # noqa: E402

# Title, x axis, y axis, which axes are logarithmic.
PLOTS = {
    "throughput": ("Throughput against clients", "callers, each with a lock of its own", "pairs a second", "xy"),
    "commands by waiters": ("Commands against waiters", "waiters in each of two processes",
                            "commands of an acquisition", "x"),
    "processes": ("One lock, many processes", "processes, one waiter each", "acquisitions a second", "x"),
    "hand-off": ("One lock, many processes", "processes, one waiter each", "hand-off, µs", "x"),
    "cost by waiters": ("Cost against waiters", "waiters", "", "xy"),
    "cost by holds": ("Cost against holds", "holds that are renewed", "% of a core", "xy"),
    "pair by others": ("A free pair beside other work", "other holds, and as many waiters", "µs", "x"),
    "busy_poll": ("busy_poll", "busy_poll, µs", "µs", ""),
    "local_handoff": ("local_handoff: two processes with 32 callers of one lock", "max_streak", "acquisitions a second",
                      "s"),
    "local_handoff fairness": ("local_handoff: two processes with 32 callers of one lock", "max_streak", "Jain index",
                               "s"),
    "watchdog batch": ("lock_watchdog_batch_size", "holds of a call", "µs", "xy"),
}


def describe(name):
    if name.startswith("latency "):
        return "A free pair, " + name.removeprefix("latency "), "µs", "part of the pairs that took less", "x"
    return PLOTS.get(name, (name, "", "", ""))


def draw(name, curves, folder):
    title, across, up, logarithmic = describe(name)
    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for curve in curves:
        axes.plot(*zip(*curve["points"]), marker="o", markersize=3, label=curve["line"])
    if "x" in logarithmic:
        axes.set_xscale("log")
    if "s" in logarithmic:
        axes.set_xscale("symlog")
    if "y" in logarithmic:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set(title=title, xlabel=across, ylabel=up)
    axes.grid(alpha=0.3)
    axes.legend()
    file_name = os.path.join(folder, re.sub(r"[^a-z0-9]+", "-", name.lower()) + ".svg")
    save(figure, file_name)


def save(figure, file_name):
    figure.savefig(file_name, metadata={"Date": None})
    pyplot.close(figure)
    with open(file_name, encoding="utf-8") as drawn:
        words = drawn.read()
    with open(file_name, "w", encoding="utf-8") as drawn:  # a hundredth of a point is enough
        drawn.write(re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", words))
    print(file_name)


def peers_of(page):
    """(library, pair in us, pairs a second) of each row of the table that has both."""
    with open(page, encoding="utf-8") as file:
        table = file.read().partition("| library | free pair p50, us | many locks, pairs/s |")[2]
    for line in table.split("\n\n")[0].splitlines()[2:]:
        name, pair, rate = (cell.strip() for cell in line.split("|")[1:4])
        if pair and rate and not pair.startswith("missing"):
            yield name, pair, rate


def draw_peers(page, file_name):
    rows = list(peers_of(page))[::-1]
    if len(rows) < 3:
        sys.exit(f"{page} has no table of peers")
    figure, parts = pyplot.subplots(2, 1, figsize=(6.4, 4.8), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    titles = ("A free lock, taken and released: µs, less is better", "Pairs a second, 1,000 locks: more is better")
    for part, title, column in zip(parts, titles, (1, 2)):
        values = [float(row[column].replace(",", "")) for row in rows]
        colours = ["#00897b" if row[0] == "latchkey" else "#9aa5b1" for row in rows]
        bars = part.barh([row[0] for row in rows], values, color=colours, height=0.7)
        part.bar_label(bars, [row[column] for row in rows], padding=4, fontsize=11)
        part.set_title(title, fontsize=11.5, loc="left", fontweight="bold", x=-0.28)
        part.margins(x=0.2)
        part.tick_params(left=False, bottom=False, labelbottom=False, labelsize=11)
        for side in part.spines.values():
            side.set_visible(False)
    save(figure, file_name)


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--peers":
        return draw_peers(*sys.argv[2:])
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        curves = json.load(file)["curves"]
    os.makedirs(sys.argv[2], exist_ok=True)
    for name in dict.fromkeys(curve["plot"] for curve in curves):
        draw(name, [curve for curve in curves if curve["plot"] == name], sys.argv[2])


main()
