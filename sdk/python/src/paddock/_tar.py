"""Directory trees as tar archives, in both directions. What comes out of a sandbox is not trusted."""

from __future__ import annotations

import os
import stat
import tarfile
import tempfile
from pathlib import Path, PurePosixPath
from typing import IO, List, Union


def pack(source: Union[str, "os.PathLike[str]"]) -> IO[bytes]:
    """The contents of a directory as an archive, at its beginning."""
    home = Path(source)
    if not home.is_dir():
        raise NotADirectoryError(f"{home} is not a directory")
    file = tempfile.TemporaryFile()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for below in sorted(home.iterdir()):
            archive.add(below, arcname=below.name, filter=_anonymous)
    file.seek(0)
    return file


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Owners of this machine mean nothing in a sandbox."""
    member.uid = member.gid = 1000
    member.uname = member.gname = ""
    return member


def unpack(file: IO[bytes], into: Union[str, "os.PathLike[str]"]) -> List[Path]:
    """Writes the regular files of an archive below a directory and returns their paths. Links, devices and names that lead
    elsewhere are left out: a sandbox must not choose where its files end up."""
    home = Path(into)
    home.mkdir(parents=True, exist_ok=True)
    written = []
    with tarfile.open(fileobj=file, mode="r:") as archive:
        for member in archive:
            name = PurePosixPath(member.name)
            if name.is_absolute() or ".." in name.parts or not (member.isfile() or member.isdir()):
                continue
            place = home.joinpath(*name.parts)
            if any(above.is_symlink() for above in (place, *place.parents) if above != home and home in above.parents):
                continue
            if member.isdir():
                place.mkdir(parents=True, exist_ok=True)
                continue
            data = archive.extractfile(member)
            if data is not None:
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("wb") as out:
                    while piece := data.read(1 << 18):
                        out.write(piece)
                place.chmod(stat.S_IMODE(member.mode) & 0o755 | 0o600)
                written.append(place)
    return written
