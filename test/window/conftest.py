import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "it"))

from fixtures import *  # noqa: E402,F401,F403 - pytest finds fixtures by their names here

from desktop import Desktop  # noqa: E402


@pytest.fixture(scope="module")
def desktop():
    it = Desktop()
    yield it
    it.stop()
