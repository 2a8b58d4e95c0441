"""M2, M3: what contrib/ has for Prometheus and Grafana names metrics that the library exports, and passes promtool if that is
installed. --self-test: a board that names others is refused."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HISTOGRAM = ["_bucket", "_sum", "_count"]


def exported(root):
    """The names of all samples, as lib/api/prometheus.cpp has them in its tables and calls."""
    source = (root / "lib/api/prometheus.cpp").read_text()
    names = set()
    for table in re.split(r"\nconstexpr ", source)[1:]:
        ending = "_total" if "counters" in table.splitlines()[0] else ""
        names |= {f"latchkey_{name}{ending}" for name in re.findall(r'\{\{"(\w+)", "', table)}
    for name in re.findall(r'out\.times\(\{"(\w+)"', source):
        names |= {f"latchkey_{name}{ending}" for ending in HISTOGRAM}
    names |= {f"latchkey_{name}_info" for name in re.findall(r'out\.info\(\{"(\w+)"', source)}
    return names


def expressions(board):
    """Every PromQL expression of a board, with what Grafana fills in replaced by what it may be."""
    found = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return [one.replace("$__rate_interval", "5m").replace("$job", ".*").replace("$instance", ".*") for one in found]


def unknown(texts, names):
    used = {name for text in texts for name in re.findall(r"\blatchkey_\w+", text)}
    return sorted(used - names)


def promtool(arguments, folder):
    if not shutil.which("promtool"):
        return []
    done = subprocess.run(["promtool", *arguments], cwd=folder, capture_output=True, text=True, timeout=120)
    return [] if done.returncode == 0 else [f"promtool {' '.join(arguments)}:\n{done.stdout}{done.stderr}"]


def parsed(texts):
    """Is each of them PromQL? promtool reads rules, so each becomes one."""
    rules = [{"record": f"panel:{number}", "expr": text} for number, text in enumerate(texts)]
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "board.yml").write_text(json.dumps({"groups": [{"name": "board", "rules": rules}]}))
        return promtool(["check", "rules", "board.yml"], folder)


def faults(root, board):
    names = exported(root)
    if len(names) < 30:
        return [f"only {len(names)} metrics found in lib/api/prometheus.cpp"]
    texts = expressions(board)
    if len(texts) < 8:
        return ["the board has hardly any expression"]
    rules = (root / "contrib/prometheus/latchkey.rules.yml").read_text()
    found = [f"no such metric: {name}" for name in unknown([*texts, rules], names)]
    found += parsed(texts)
    found += promtool(["check", "rules", "latchkey.rules.yml"], root / "contrib/prometheus")
    found += promtool(["test", "rules", "latchkey.rules.test.yml"], root / "contrib/prometheus")
    return found


def self_test(root, board):
    names = exported(root)
    assert unknown(["rate(latchkey_acquird_total[5m]) + latchkey_held"], names) == ["latchkey_acquird_total"]
    board["panels"][0]["targets"][0]["expr"] = "sum(latchkey_nothing_total)"
    assert faults(root, board) == ["no such metric: latchkey_nothing_total"]
    if shutil.which("promtool"):
        board["panels"][0]["targets"][0]["expr"] = "sum(latchkey_held"
        assert faults(root, board)


def main():
    root = pathlib.Path(sys.argv[-1])
    board = json.loads((root / "contrib/grafana/latchkey.json").read_text())
    if sys.argv[1] == "--self-test":
        return self_test(root, board)
    found = faults(root, board)
    print("\n".join(found) or f"{len(exported(root))} metrics, {len(expressions(board))} expressions")
    if found:
        sys.exit(1)


main()
