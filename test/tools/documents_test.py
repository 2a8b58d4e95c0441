"""D2: what the pages show of the program can be typed: blocks marked `sh` are run, and every command names subcommands and options that
there are."""

import os
import pathlib
import re
import subprocess

import support
from support import Case

ROOT = pathlib.Path(__file__).parents[2]
BLOCK = re.compile(r"^( *)```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`latchkey ([^`\n]+)`")
FENCED = re.compile(r"^ *```\w*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"(?:^ *|ExecStart=)latchkey (.*)$", re.MULTILINE)


def pages():
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def commands(text):
    return INLINE.findall(text) + [line for block in FENCED.findall(text) for line in LINE.findall(block)]


class Documents(Case):
    def test_D2_blocks_run(self):
        folder = self.folder / "bin"
        folder.mkdir()
        (folder / "latchkey").symlink_to(pathlib.Path(support.tool).resolve())
        ran = 0
        for page in pages():
            for _, block in BLOCK.findall(page.read_text(encoding="utf-8")):
                made = subprocess.run(["sh", "-eu", "-c", block], cwd=self.folder, capture_output=True, text=True, timeout=60,
                                      env=self.environment(PATH=f"{folder}:{os.environ['PATH']}"), stdin=subprocess.DEVNULL)
                self.assertEqual((made.returncode, made.stderr), (0, ""), f"{page.name}:\n{block}")
                ran += 1
        self.assertGreaterEqual(ran, 4)

    def options_of(self, *words):
        said = self.latchkey(*words, "--help").stdout
        return set(re.findall(r"^ +(?:(-\w), )?(--[a-z-]+)", said, re.MULTILINE))

    def test_D2_commands_are_there(self):
        listed = self.latchkey("--help").stdout.split("Subcommands")[1].split("\n\n")[0]
        names = [*re.findall(r"^  ([a-z-]+) ", listed, re.MULTILINE), "who"]
        known = {name: {word for pair in self.options_of(name) for word in pair if word} for name in names}
        common = {word for pair in self.options_of() for word in pair if word}
        seen = 0
        for page in pages():
            for line in commands(page.read_text(encoding="utf-8")):
                words = [word.rstrip(",.;:)") for word in line.split()]
                name = next((word for word in words if not word.startswith("-")), "")
                self.assertIn(name, ["", *names], f"{page.name}: latchkey {line}")
                own = words[:words.index("--")] if "--" in words else words
                wrong = [word for word in own if re.fullmatch(r"--?[a-z][a-z-]*", word) and
                         word not in known.get(name, set()) | common]
                if name != "run":  # behind the name of its lock stands somebody else's command line
                    self.assertEqual(wrong, [], f"{page.name}: latchkey {line}")
                seen += 1
        self.assertGreater(seen, 20)


if __name__ == "__main__":
    support.main()
