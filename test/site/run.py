"""run.py FOLDER COMMAND...: runs a command of the repository in its folder."""

import subprocess
import sys

if len(sys.argv) < 3:
    sys.exit(__doc__)
sys.exit(subprocess.run(sys.argv[2:], cwd=sys.argv[1], stdin=subprocess.DEVNULL, check=False).returncode)
