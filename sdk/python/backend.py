"""Builds the wheel and the source archive (PEP 517), the same bytes from the same sources every time.

It needs nothing but Python, so that `make sdk` works without the network. `sdk/python/build` calls it, and so does pip.
"""

import base64
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

try:
    import tomllib
except ImportError:  # Python before 3.11
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
NAME = PROJECT["name"].replace("-", "_")
STEM = f"{NAME}-{PROJECT['version']}"
WHEN = (2020, 1, 1, 0, 0, 0)  # of every member; a zip archive knows no time before 1980


def sources():
    """{path in the package: bytes}"""
    files = (path for path in (HERE / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(HERE / "src").as_posix(): path.read_bytes() for path in sorted(files)}


def metadata():
    lines = ["Metadata-Version: 2.4", f"Name: {PROJECT['name']}", f"Version: {PROJECT['version']}", f"Summary: {PROJECT['description']}",
             f"License-Expression: {PROJECT['license']}", f"Keywords: {','.join(PROJECT['keywords'])}",
             *(f"Classifier: {each}" for each in PROJECT["classifiers"]), f"Requires-Python: {PROJECT['requires-python']}",
             *(f"Requires-Dist: {each}" for each in PROJECT["dependencies"]), "Description-Content-Type: text/markdown", "",
             (HERE / "README.md").read_text()]
    return "\n".join(lines).encode()


def wheel_files():
    info = f"{STEM}.dist-info"
    files = {**sources(), f"{info}/METADATA": metadata(),
             f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: paddock\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    record = [f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}"
              for name, data in files.items()]
    return {**files, f"{info}/RECORD": "\n".join([*record, f"{info}/RECORD,,", ""]).encode()}


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = f"{STEM}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w") as archive:
        for path, data in wheel_files().items():
            member = zipfile.ZipInfo(path, WHEN)
            member.create_system, member.external_attr = 3, 0o100644 << 16
            # Stored, not compressed: zlib's output differs between its versions.
            archive.writestr(member, data, zipfile.ZIP_STORED)
    return name


def build_sdist(sdist_directory, config_settings=None):
    name = f"{STEM}.tar.gz"
    files = {f"src/{path}": data for path, data in sources().items()}
    files.update({each: (HERE / each).read_bytes() for each in ("README.md", "pyproject.toml", "backend.py")}, **{"PKG-INFO": metadata()})
    with tarfile.open(Path(sdist_directory) / name, "w:gz") as archive:
        for path, data in files.items():
            member = tarfile.TarInfo(f"{STEM}/{path}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return name
