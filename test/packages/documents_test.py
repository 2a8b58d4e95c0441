"""P6: SECURITY.md and CONTRIBUTING.md say what a reporter and a contributor have to know, with commands and folders that there are."""

import re

from support import SOURCE, expect, options, run, version

WANTED = {
    "SECURITY.md": ("Which versions", "How to report", "What counts", "What does not"),
    "CONTRIBUTING.md": ("Before you begin", "Build and test", "What a change needs", "Licence"),
}


def main():
    options(__doc__)
    for name, headings in WANTED.items():
        text = (SOURCE / name).read_text(encoding="utf-8")
        found = re.findall(r"^## (.*)$", text, re.M)
        expect(all(any(one.startswith(heading) for one in found) for heading in headings), f"P6: {name} has the chapters {found}")
        for script in re.findall(r"\bscripts/([a-z-]+)", text):
            expect((SOURCE / "scripts" / script).exists(), f"P6: {name} names scripts/{script}")
        for group in re.findall(r"scripts/test ([a-z][a-z-]*)", text):
            expect(group in run("scripts/test", "--list", cwd=SOURCE), f"P6: {name} names the group {group}")
    minor = ".".join(version().split(".")[:2])
    expect(f"{minor}.x" in (SOURCE / "SECURITY.md").read_text(encoding="utf-8"), f"P6: SECURITY.md does not speak of {minor}.x")
    print("P6: SECURITY.md and CONTRIBUTING.md name scripts and groups that there are")


main()
