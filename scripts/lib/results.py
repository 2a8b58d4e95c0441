"""results.py JUNIT_FILE FAILURES_FILE

Prints "PASSED FAILED" for a run of ctest, counting the cases inside a Catch2 binary one by one, and writes what the
failed tests said, the end of it where it is long. What did not run counts as failed.
"""

import re
import sys
import xml.etree.ElementTree as xml

MOST_LINES = 40


def counts(text, ok):
    """Cases that passed and failed, from the last summary that Catch2 printed; a plain program is one case."""
    summary = re.findall(r"All tests passed \(.* in (\d+) test cases?\)", text)
    if summary and ok:
        return int(summary[-1]), 0
    summary = re.findall(r"test cases:\s*(\d+)(.*)", text)
    if summary:
        total = int(summary[-1][0])
        good = sum(int(n) for n in re.findall(r"(\d+) (?:passed|failed as expected)", summary[-1][1]))
        return good, max(total - good, 0 if ok else 1)
    return (1, 0) if ok else (0, 1)


def end_of(text):
    """A test that ran into its limit may have printed one thing for ever, and hide the failure before it."""
    lines = text.strip().splitlines()
    if len(lines) > MOST_LINES:
        lines[:-MOST_LINES] = [f"... {len(lines) - MOST_LINES} lines before these are in the whole output"]
    return "\n".join(lines)


def main():
    passed = failed = 0
    with open(sys.argv[2], "w", encoding="utf-8") as failures:
        for case in xml.parse(sys.argv[1]).getroot().iter("testcase"):
            text = case.findtext("system-out") or ""
            ok = case.get("status") == "run"
            good, bad = counts(text, ok)
            passed += good
            failed += bad
            if bad:
                why = f"{case.get('status')}, {float(case.get('time') or 0):.0f} s"
                failures.write(f"--- {case.get('name')} ({why}) ---\n{end_of(text)}\n")
    print(passed, failed)


main()
