"""The wheel, and what its README promises."""

import os
import re
import subprocess
import sys
import zipfile

import pytest
from conftest import ROOT, SDK

BLOCKS = re.findall(r"^```python\n(.*?)^```", (SDK / "README.md").read_text(), re.M | re.S)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    done = subprocess.run([SDK / "build", out], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out / os.path.basename(done.stdout.strip())


def test_two_builds_are_the_same(wheel, tmp_path):
    for path in (SDK / "src").rglob("*.py"):
        os.utime(path)
    subprocess.run([SDK / "build", tmp_path], check=True, capture_output=True, env={**os.environ, "TZ": "Asia/Tokyo", "LC_ALL": "C"})
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


def test_what_is_in_it(wheel):
    assert wheel.name == "paddock_sandbox-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert archive.testzip() is None
        record = archive.read("paddock_sandbox-0.1.0.dist-info/RECORD").decode().splitlines()
        metadata = archive.read("paddock_sandbox-0.1.0.dist-info/METADATA").decode()
    assert {"paddock/py.typed", "paddock/__init__.py", "paddock/tools.py", "paddock/compat/sandkasten.py"} <= set(names)
    assert {line.split(",")[0] for line in record} == set(names) and not any("__pycache__" in name or "test" in name for name in names)
    assert "Name: paddock-sandbox" in metadata and "Requires-Python: >=3.9" in metadata and "# Paddock for Python" in metadata
    from paddock._version import __version__

    assert f"Version: {__version__}\n" in metadata


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Installed as a user would, except that the packages that it needs are those of the tests."""
    home = tmp_path_factory.mktemp("installed")
    done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--target", home, wheel],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return home


def python(installed, program, daemon, **extra):
    packages = next(path for path in sys.path if path.endswith("sdk-python/packages"))
    env = {**{key: value for key, value in os.environ.items() if not key.startswith("PADDOCK_")}, "PYTHONPATH": f"{installed}:{packages}",
           "PADDOCK_URL": daemon.url, "PADDOCK_API_KEY": daemon.key, **extra}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env=env, cwd="/")


def test_the_readme_begins_with_ten_lines_that_work(installed, daemon):
    assert len([line for line in BLOCKS[0].splitlines() if line.strip()]) <= 10
    assert (SDK / "README.md").read_text().startswith(f"# Paddock for Python\n\n```python\n{BLOCKS[0]}")
    done = python(installed, BLOCKS[0], daemon)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "42" and lines[2] == "hello, you, in /tmp" and lines[4] == "6" and "Exited(exit_code=0" in lines[-1]


@pytest.mark.parametrize("number", range(1, len(BLOCKS)))
def test_the_other_examples_of_the_readme(installed, daemon, number):
    done = python(installed, BLOCKS[number], daemon)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_quick_start_works(installed, daemon):
    (block,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/quick-start.md").read_text(), re.M | re.S)
    done = python(installed, block, daemon)
    assert (done.returncode, done.stdout.strip()) == (0, "42"), done


def test_the_makefile_builds_it():
    """Every `sdk/*/build`, of which this SDK's is one."""
    done = subprocess.run(["make", "-n", "sdk"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "in sdk/*/build;" in done.stdout, done
    assert os.access(ROOT / "sdk/python/build", os.X_OK)
