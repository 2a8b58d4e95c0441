"""plots.py FILE FOLDER: draws what scripts/bench measured, one SVG for each plot. Needs Matplotlib."""

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
    figure.savefig(file_name, metadata={"Date": None})
    pyplot.close(figure)
    with open(file_name, encoding="utf-8") as drawn:
        words = drawn.read()
    with open(file_name, "w", encoding="utf-8") as drawn:  # a hundredth of a point is enough
        drawn.write(re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", words))
    print(file_name)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        curves = json.load(file)["curves"]
    os.makedirs(sys.argv[2], exist_ok=True)
    for name in dict.fromkeys(curve["plot"] for curve in curves):
        draw(name, [curve for curve in curves if curve["plot"] == name], sys.argv[2])


main()
