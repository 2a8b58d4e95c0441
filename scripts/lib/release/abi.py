"""The binary interface of two releases, by abidiff: the symbols that a program links against, and no more, since a release has no
debug information. That a type of a public header has grown is not seen here."""

import subprocess

from .refusal import Refusal

# Boost's templates come and go with a compiler's mood, and with Boost; what is ours has our namespace in its name.
ONLY_OURS = """[suppress_function]
  symbol_name_not_regexp = ^_Z(T[A-Za-z]*)?N[rVKRO]*8latchkey
  drop = yes
[suppress_variable]
  symbol_name_not_regexp = ^_Z(T[A-Za-z]*)?N[rVKRO]*8latchkey
  drop = yes
"""


def is_patch(old, new):
    """Has the last number alone grown?"""
    return old.split(".")[:2] == new.split(".")[:2]


def library(root):
    found = [path for path in sorted(root.rglob("liblatchkey.so.*")) if not path.is_symlink()]
    if len(found) != 1:
        raise Refusal(f"the build installs {len(found)} shared libraries")
    return found[0]


def compare(old, new, name, patch, work):
    """Words about it. A patch release that takes away or changes a symbol of ours is refused; one more is none the worse."""
    suppressions = work / "only-ours.abignore"
    suppressions.write_text(ONLY_OURS, encoding="ascii")
    done = subprocess.run(["abidiff", "--suppressions", str(suppressions), "--no-added-syms", str(old), str(new)],
                          capture_output=True, text=True, timeout=1800)
    if done.returncode & 3:
        raise Refusal(f"abidiff cannot compare {old.name} with {new.name}:\n{done.stdout}{done.stderr}")
    told = subprocess.run(["c++filt"], input=done.stdout, capture_output=True, text=True, check=True).stdout
    if done.returncode == 0:
        return f"abidiff: every symbol of {name} is there as it was"
    if patch:
        raise Refusal(f"abidiff: symbols of latchkey have changed since {name}, and only the last number has grown:\n{told}")
    return f"abidiff: changed since {name}, as this version may:\n{told}"
