"""The help, the manual page and the completions say the same, and the program understands what they say."""

import pathlib
import re
import shlex
import subprocess

import support
from support import Case

COMPLETE = """
source <("$0" completion bash)
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
COMPREPLY=()
_latchkey
printf '%s\\n' "${COMPREPLY[@]}"
"""


def options_in(text):
    return set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", text, re.MULTILINE))


class Table(Case):
    def words(self, *words):
        made = self.latchkey(*words)
        self.assertEqual((made.returncode, made.stderr), (0, ""))
        return made.stdout

    def subcommands(self):
        listed = self.words("--help").split("Subcommands")[1].split("\n\n")[0]
        names = re.findall(r"^  ([a-z-]+) ", listed, re.MULTILINE)
        self.assertIn("run", names)
        return names

    def test_manual(self):
        page = self.words("--manual")
        rendered = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-rLL=200n", "-P-c"], input=page, text=True,
                                  capture_output=True, check=True)
        self.assertEqual(rendered.stderr, "")
        text = re.sub(r".\x08", "", rendered.stdout)
        parts = re.split(r"^   latchkey ", text.split("\nOPTIONS")[0], flags=re.MULTILINE)[1:]
        self.assertEqual([part.split()[0] for part in parts], self.subcommands())
        for part in parts:
            own = self.words(part.split()[0], "--help").split("Common options:")[0]
            self.assertEqual(options_in(part), options_in(own))
        common = self.words("--help").split("\nOptions:")[1].split("\n\n")[0]
        self.assertEqual(options_in(text.split("\nOPTIONS")[1].split("\nENVIRONMENT")[0]), options_in(common))
        for name in ("LATCHKEY_URI_FILE", "126, 127"):
            self.assertIn(name, text)

    def complete(self, *words):
        made = subprocess.run(["bash", "-c", COMPLETE, support.tool, "latchkey", *words], capture_output=True,
                              text=True, check=True)
        return made.stdout.split()

    def test_bash(self):
        self.assertEqual(self.complete("r")[:1], ["run"])
        self.assertTrue(set(self.subcommands()) < set(self.complete("")))
        for name in self.subcommands():
            help_text = self.words(name, "--help")
            offered = {word for word in self.complete(name, "-") if word.startswith("--")}
            self.assertEqual(offered, options_in(help_text))
        self.assertEqual(self.complete("run", "--kind", "f"), ["fair", "fenced"])
        self.assertEqual(self.complete("run", "--on-loss", ""), ["term", "kill", "ignore"])
        self.assertEqual(self.complete("completion", ""), ["bash", "zsh", "fish"])
        (self.folder / "certificate").touch()
        self.assertEqual(self.complete("run", "--cacert", f"{self.folder}/c"), [f"{self.folder}/certificate"])

    def test_other_shells(self):
        """They are not there to be asked: every option is told of."""
        every = set().union(*(options_in(self.words(name, "--help")) for name in self.subcommands()))
        for shell, form in (("zsh", r"--([a-z][a-z-]*)"), ("fish", r" -l ([a-z][a-z-]*)")):
            said = self.words("completion", shell)
            self.assertEqual({"--" + name for name in re.findall(form, said)}, every)
        self.assertEqual(self.latchkey("completion", "csh").returncode, 64)

    def test_every_option_is_understood(self):
        """With a bad value each one is the reason why nothing happens."""
        own = self.words("run", "--help").split("Common options:")[0]
        rows = re.findall(r"^ +(?:-\w, )?(--[a-z-]+) (D|N|KIND|WAY)\b", own, re.MULTILINE)
        self.assertGreater(len(rows), 8)
        for name, _ in rows:
            made = self.latchkey("run", "--kind", "semaphore", name, "no-value", self.name, "true") \
                if name != "--kind" else self.latchkey("run", name, "no-value", self.name, "true")
            self.assertEqual(made.returncode, 64)
            self.assertIn(f"{name} is ", made.stderr)

    def test_readme(self):
        """The command line that it shows."""
        root = pathlib.Path(__file__).parents[2]
        [line] = re.findall(r"^latchkey (run .*)$", (root / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
        self.assertRegex(self.words(*shlex.split(line)), r"^only here: [0-9a-f-]{36}:\d+\n$")

    def test_page(self):
        """Its options are those of the program, and its commands are refused for nothing but what is missing here."""
        root = pathlib.Path(__file__).parents[2]
        page = (root / "docs/latchkey-run.md").read_text(encoding="utf-8")
        lines = re.findall(r"latchkey (run -n [^`\n]*)", page)
        self.assertGreater(len(lines), 3)
        for line in lines:
            words = shlex.split(line.replace("sleep 60", "true"))
            made = self.latchkey(*words)
            self.assertEqual(made.returncode, 0 if "--shell" in words else 127, made.stderr)


if __name__ == "__main__":
    support.main()
