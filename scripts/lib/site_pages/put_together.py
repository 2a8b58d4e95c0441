"""put_together.py FOLDER TOOL: fills FOLDER with the pages of the site, for scripts/site."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts/lib"))
from site_pages import stage  # noqa: E402

faults = stage.assemble(ROOT, pathlib.Path(sys.argv[1]), str(pathlib.Path(sys.argv[2]).resolve()))
if faults:
    sys.exit("\n".join(sorted(set(faults))))
