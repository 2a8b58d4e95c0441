"""What git has: the version, its tag, whether the texts agree with it, and a tarball that is the same each time."""

import gzip
import re
import subprocess

from .refusal import Refusal, run


def text_at(root, ref, name):
    return run("git", "show", f"{ref}:{name}", cwd=root)


def version(root, ref):
    """It stands in CMakeLists.txt, and nowhere else."""
    found = re.search(r"^project\(latchkey VERSION (\d+\.\d+\.\d+)\b", text_at(root, ref, "CMakeLists.txt"), re.M)
    if not found:
        raise Refusal("CMakeLists.txt does not say project(latchkey VERSION X.Y.Z ...)")
    return found[1]


def has(root, ref, name):
    return bool(run("git", "ls-tree", "--name-only", ref, name, cwd=root).strip())


def check(root, number, untagged):
    """The name of what is released: the tag, or HEAD where the tag does not matter."""
    changed = run("git", "status", "--porcelain", cwd=root)
    if changed:
        raise Refusal(f"the tree has changes that are not committed:\n{changed}")
    if untagged:
        print(f"a rehearsal of {number}: tag and CHANGELOG.md are not looked at")
        return "HEAD"
    tag = f"v{number}"
    tags = run("git", "tag", "--list", cwd=root).split()
    if tag not in tags:
        raise Refusal(f"there is no tag {tag}, and CMakeLists.txt says {number}: git tag -a {tag}, or --untagged to rehearse")
    if run("git", "rev-parse", f"{tag}^{{commit}}", cwd=root) != run("git", "rev-parse", "HEAD", cwd=root):
        raise Refusal(f"the tag {tag} is not what is checked out")
    section = re.search(rf"^## {re.escape(number)}\b(.*)$", text_at(root, tag, "CHANGELOG.md"), re.M)
    if not section:
        raise Refusal(f"CHANGELOG.md has no section {number}")
    if "not released" in section[1]:
        raise Refusal(f"CHANGELOG.md still says that {number} is not released")
    if has(root, tag, "debian/changelog"):
        head = text_at(root, tag, "debian/changelog").splitlines()[0]
        if f"({number}-" not in head:
            raise Refusal(f"debian/changelog begins with {head!r}, not with {number}")
    return tag


def last_release(root, ref, number):
    """The newest tag of a lower version that this one comes from; None: there is none."""
    numbers = {name: tuple(map(int, name[1:].split("."))) for name in
               run("git", "tag", "--list", "v*", "--merged", ref, cwd=root).split() if re.fullmatch(r"v\d+\.\d+\.\d+", name)}
    earlier = [name for name, one in numbers.items() if one < tuple(map(int, number.split(".")))]
    return max(earlier, key=numbers.get, default=None)


def date(root, ref):
    return run("git", "log", "-1", "--format=%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", ref, cwd=root,
               env={"TZ": "UTC", "PATH": "/usr/local/bin:/usr/bin:/bin"}).strip()


def tarball(root, ref, number, folder):
    """By git archive: times are those of the commit. Neither name nor time stands in the compressed file."""
    made = subprocess.run(["git", "archive", "--format=tar", f"--prefix=latchkey-{number}/", ref], cwd=root, capture_output=True,
                          check=True, timeout=300)
    path = folder / f"latchkey-{number}.tar.gz"
    path.write_bytes(gzip.compress(made.stdout, 9, mtime=0))
    return path
