"""Why there is no release, and commands that refuse with their own words."""

import subprocess


class Refusal(Exception):
    pass


def run(*command, cwd=None, env=None, seconds=3600):
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=env, timeout=seconds, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode:
        raise Refusal(f"{' '.join(words)} failed with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout
