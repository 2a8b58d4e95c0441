"""subjects.py --check ROOT: every commit's subject is `area: verb ...`, of at most 64 characters. Those from before SINCE are as they
are; a tree without a history, or a machine without git, has none. subjects.py --self-test: shows that --check can fail.
"""

import pathlib
import re
import shutil
import subprocess
import sys

SINCE = "2026-11-27T02:00:00Z"
FORM = re.compile(r"^([a-z][a-z0-9_]*: [a-z][a-z-]* .*|Revert \".*|Merge .*)$")
LONGEST = 64


def wrong(subjects):
    for subject in subjects:
        if not FORM.match(subject):
            yield f"not `area: verb ...`: {subject}"
        elif len(subject) > LONGEST and not subject.startswith(("Revert ", "Merge ")):
            yield f"{len(subject)} characters, not {LONGEST}: {subject}"


def check(root):
    if not (root / ".git").exists() or not shutil.which("git"):
        return []
    done = subprocess.run(["git", "-C", root, "-c", "safe.directory=*", "log", "--no-merges", f"--since={SINCE}",
                           "--format=%s"], text=True, check=False, stdout=subprocess.PIPE)
    return list(wrong(done.stdout.splitlines())) if done.returncode == 0 else []


def self_test():
    good = ["machine: let what is released again grow old", 'Revert "x"']
    bad = ["Machine: let it go", "machine let it go", "machine: Let it go", "machine: let" + " it" * 20]
    assert not list(wrong(good)) and len(list(wrong(bad))) == len(bad), list(wrong(bad + good))


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 3 or sys.argv[1] != "--check":
        sys.exit(__doc__)
    said = check(pathlib.Path(sys.argv[2]))
    sys.exit("\n".join(said) or None)


if __name__ == "__main__":
    main()
