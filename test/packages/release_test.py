"""P6: scripts/release. On this tree: a tarball with every file, an SBOM that SPDX's own tools accept, and checksums; with LATCHKEY_LONG in
the environment the same bytes from two builds in two folders, too, which the script itself looks at before every release. On a small
tree, in which a build takes a second: everything that it must refuse, bytes that differ among it.
"""

import os
import shutil
import tarfile

from support import SOURCE, attempt, clean_environment, copy_of_tree, expect, fresh, in_long_form, options, place, python_tools, run, version

WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@a.invalid", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@a.invalid",
       "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}

SMALL = {
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.24)
project(latchkey VERSION 1.2.0 LANGUAGES CXX)
include(GNUInstallDirs)
add_library(latchkey small.cpp)
set_target_properties(latchkey PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 1)
target_compile_options(latchkey PRIVATE -ffile-prefix-map=${PROJECT_SOURCE_DIR}=here)
install(TARGETS latchkey)
""",
    "small.cpp": """namespace latchkey {
struct lock { void take(int); };
void lock::take(int) {}
char const* where() { return __FILE__; }
}
namespace boost { void helper() {} }
""",
    "CHANGELOG.md": "# Changes\n\n## 1.2.0\n\n- first\n",
    "debian/changelog": "latchkey (1.2.0-1) bookworm; urgency=medium\n",
}


class Tree:
    """A repository with the script in it."""

    def __init__(self, folder):
        self.folder = folder
        self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-qm", "all")

    def git(self, *words):
        return run("git", *words, cwd=self.folder, env=clean_environment(**WHO))

    def change(self, name, old, new):
        path = self.folder / name
        text = path.read_text(encoding="utf-8")
        expect(old in text, f"{name} has no {old!r}")
        path.write_text(text.replace(old, new), encoding="utf-8")

    def commit(self, tag=None):
        self.git("commit", "-qam", "change")
        if tag:
            self.git("tag", tag)

    def release(self, *words):
        return attempt("scripts/release", *words, cwd=self.folder, env=clean_environment(**WHO), seconds=2700)

    def made(self, *words):
        code, said = self.release(*words)
        expect(code == 0, f"P6: refused:\n{said}")
        return said

    def refused(self, words, *options):
        code, said = self.release(*options)
        expect(code == 1 and words in said, f"P6: expected a refusal with {words!r}, got {code}:\n{said}")


def small_tree(folder):
    for name, text in SMALL.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / ".gitignore").write_text("/build/\n", encoding="utf-8")
    shutil.copytree(SOURCE / "scripts/lib/release", folder / "scripts/lib/release", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(SOURCE / "scripts/release", folder / "scripts/release")
    return Tree(folder)


def what_is_refused(folder):
    tree = small_tree(folder)
    tree.refused("there is no tag v1.2.0")
    tree.git("tag", "v1.2.0")
    (tree.folder / "small.cpp").write_text("broken", encoding="utf-8")
    tree.refused("not committed")
    tree.git("checkout", "-q", ".")
    said = tree.made()
    expect("no tag of an earlier release" in said, f"P6: it says nothing about the missing tag:\n{said}")
    sums = tree.folder / "build/release"
    first = (sums / "SHA256SUMS").read_text(encoding="ascii")
    expect(run("sha256sum", "--check", "SHA256SUMS", cwd=sums).count(": OK") == 2, "P6: SHA256SUMS is not what sha256sum reads")
    tree.made()
    expect(first == (sums / "SHA256SUMS").read_text(encoding="ascii"), "P6: a second run makes other files")

    # A patch: what is not ours may change, what is new may come.
    def next_version(number, *texts):
        last = tree.git("describe", "--tags", "--abbrev=0").strip()[1:]
        for name in ("CMakeLists.txt", "CHANGELOG.md", "debian/changelog"):
            tree.change(name, last, number)
        for text in texts:
            tree.change("small.cpp", *text)
        tree.commit()

    next_version("1.2.1", ("void helper() {}", "void other() {}"), ("char const*", "void more() {}\nchar const*"))
    tree.git("tag", "v1.2.1")
    said = tree.made()
    expect("every symbol of v1.2.0 is there" in said, f"P6: a harmless patch:\n{said}")
    for old, new in (("take(int)", "take(long)"), ("void more() {}\n", "")):
        tree.change("small.cpp", old, new)
        for name in ("CMakeLists.txt", "CHANGELOG.md", "debian/changelog"):
            tree.change(name, "1.2.1", "1.2.2")
        tree.commit("v1.2.2")
        tree.refused("symbols of latchkey have changed since v1.2.1")
        tree.git("tag", "-d", "v1.2.2")
        tree.git("reset", "-q", "--hard", "v1.2.1")

    # The middle number may change what it wants.
    next_version("1.3.0", ("take(int)", "take(long)"))
    tree.refused("there is no tag v1.3.0")
    tree.change("CHANGELOG.md", "## 1.3.0", "## 1.3.0 (not released yet)")
    tree.commit("v1.3.0")
    tree.refused("CHANGELOG.md still says that 1.3.0 is not released")
    expect("a rehearsal of 1.3.0" in tree.made("--untagged"), "P6: --untagged")
    tree.change("CHANGELOG.md", " (not released yet)", "")
    tree.commit()
    tree.refused("the tag v1.3.0 is not what is checked out")
    tree.git("tag", "-f", "v1.3.0")
    said = tree.made()
    expect("changed since v1.2.1, as this version may" in said and "take(int)" in said, f"P6: a new middle number:\n{said}")

    next_version("1.3.1")
    tree.change("debian/changelog", "1.3.1", "1.3.0")
    tree.commit("v1.3.1")
    tree.refused("debian/changelog begins with")
    tree.git("tag", "-d", "v1.3.1")
    tree.change("debian/changelog", "1.3.0", "1.3.1")
    tree.change("CMakeLists.txt", "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=here", "-DNO_MAP")
    tree.commit("v1.3.1")
    tree.refused("two builds in two folders differ")
    expect(tree.release("--no-such-option")[0] == 2, "P6: wrong usage")


def once_in_the_tree():
    """Files that say the version beside CMakeLists.txt say the same one."""
    number = version()
    found = {name for name in run("git", "-C", SOURCE, "grep", "-lF", "--untracked", number).split()
             if not name.startswith(("test/", "docs/runs/"))}
    others = {"CHANGELOG.md", "debian/changelog", "contrib/vcpkg/ports/latchkey/vcpkg.json"}
    expect(found <= {"CMakeLists.txt"} | others, f"P6: the version stands also in {sorted(found - others - {'CMakeLists.txt'})}")
    expect(others <= found, f"P6: {sorted(others - found)} say another version than CMakeLists.txt, {number}")


def this_tree(given, folder):
    tree = Tree(copy_of_tree(folder / "tree"))
    out = folder / "out"
    said = tree.made("--untagged", "--out", out, *([] if in_long_form() else ["--unbuilt"]))
    print(said)
    expect(("are equal, byte for byte" in said) == in_long_form(), "P6: whether two builds were compared")
    number = version()
    names = sorted(path.name for path in out.iterdir())
    expect(names == ["SHA256SUMS", f"latchkey-{number}.spdx.json", f"latchkey-{number}.tar.gz"], f"P6: it made {names}")
    run("sha256sum", "--check", "SHA256SUMS", cwd=out)
    with tarfile.open(out / f"latchkey-{number}.tar.gz") as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()} - {""}
    kept = set(tree.git("ls-files").split("\n")) - {""}
    expect(kept <= packed, f"P6: the tarball lacks {sorted(kept - packed)[:5]}")
    # SPDX's own program, not our idea of SPDX.
    code, answer = attempt(python_tools(given.build) / "pyspdxtools", "-i", out / f"latchkey-{number}.spdx.json", seconds=300)
    expect(code == 0, f"P6: the SBOM is not valid:\n{answer[-3000:]}")


def main():
    given = options(__doc__)
    folder = fresh(place(given.build) / "release")
    os.environ.pop("CXX", None)
    once_in_the_tree()
    small = folder / "small"
    small.mkdir()
    what_is_refused(small)
    this_tree(given, folder)
    print("P6: tags, texts, symbols and bytes that do not agree are refused" + ("; this tree gives the same bytes twice" if in_long_form() else ""))


if __name__ == "__main__":
    main()
