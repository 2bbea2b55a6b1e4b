import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "it"))

from fixtures import *  # noqa: E402,F401,F403 - pytest finds fixtures by their names here
