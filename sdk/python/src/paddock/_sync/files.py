# Made by sdk/python/generate from _async/files.py. Edit that instead.
"""Files of sandboxes and of workspaces."""

from __future__ import annotations

import os
import posixpath
import tempfile
from pathlib import Path
from typing import Any, Iterator, Callable, Dict, List, Literal, Mapping, Optional, Union

import httpx

from .. import models
from .._http import Content, file_segments, given, headers_of, multipart, query
from .._operations import operation
from .._stat import FileStat
from .._tar import pack, unpack
from ..errors import NotFound, PaddockError
from .api import Api
from .streams import QUIET, Watch

FileKind = Literal["file", "directory", "symlink", "fifo", "socket", "device", "unknown"]


class Tree:
    """Reading and writing below an address: what sandboxes and workspaces have in common."""

    def __init__(self, api: Api, root: str, workdir: Callable[[], str]) -> None:
        self._api, self._root, self._workdir = api, root, workdir

    def _absolute(self, path: Union[str, "os.PathLike[str]"]) -> str:
        """A relative path begins in the sandbox's working directory."""
        return posixpath.join(self._workdir(), os.fspath(path))

    def _at(self, path: Union[str, "os.PathLike[str]"], **params: Any) -> str:
        return f"{self._root}/files/{file_segments(self._absolute(path))}{query(params)}"

    def _read(self, path: str, user: Optional[str], offset: Optional[int], length: Optional[int]) -> bytes:
        headers = None
        if offset is not None or length is not None:
            if length == 0:
                return b""
            start = offset or 0
            headers = {"Range": f"bytes={start}-{'' if length is None else start + length - 1}"}
        return self._api.bytes("GET", self._at(path, user=user), headers=headers)

    def read_text(self, path: str, *, user: Optional[str] = None, encoding: str = "utf-8") -> str:
        """The content of a file, as text."""
        return (self._read(path, user, None, None)).decode(encoding)

    def _list(self, path: str, user: Optional[str], depth: Optional[int], limit: Optional[int]) -> List[models.FileInfo]:
        """All entries; `limit` is how many are asked for at a time."""
        found: List[models.FileInfo] = []
        cursor: Optional[str] = None
        while True:
            document = self._api.json("GET", self._at(path, list=1, user=user, depth=depth, limit=limit, cursor=cursor))
            page = models.FileList._of(document)
            found += page.entries
            cursor = page.next
            if not cursor:
                return found

    def _stat(self, path: str, user: Optional[str]) -> FileStat:
        request = self._api.build("HEAD", self._at(path, user=user))
        response = self._api.send(request)
        self._api.body(request, response)
        return FileStat(headers_of(response))

    def exists(self, path: str, *, user: Optional[str] = None) -> bool:
        """Whether there is something at the path."""
        try:
            self._stat(path, user)
        except NotFound:
            return False
        return True

    def _chunks(self, url: str) -> Iterator[bytes]:
        request = self._api.build("GET", url)
        response = self._api.send(request)
        stream = response.stream
        assert isinstance(stream, httpx.SyncByteStream)
        try:
            for chunk in stream:
                yield chunk
        except httpx.TransportError as error:
            raise self._api.lost(request, error) from error
        finally:
            stream.close()


class WorkspaceFiles(Tree):
    """The files of a workspace, without a sandbox. Relative paths begin at its root."""

    @operation("readWorkspaceFile")
    def read(self, path: str, *, user: Optional[str] = None, offset: Optional[int] = None, length: Optional[int] = None) -> bytes:
        """The content of a file, or a part of it."""
        return self._read(path, user, offset, length)

    @operation("readWorkspaceFile", fixed=("list", "cursor"))
    def list(self, path: str = "", *, user: Optional[str] = None, depth: Optional[int] = None, limit: Optional[int] = None) -> List[models.FileInfo]:
        """The entries of a directory."""
        return self._list(path, user, depth, limit)

    @operation("writeWorkspaceFile")
    def write(self, path: str, content: Content, *, user: Optional[str] = None, append: Optional[bool] = None, mode: Optional[str] = None) -> models.FileInfo:
        """Writes a file; missing directories are created."""
        return models.FileInfo._of(self._api.json("PUT", self._at(path, user=user, append=append, mode=mode), content=content))

    @operation("statWorkspaceFile")
    def stat(self, path: str, *, user: Optional[str] = None) -> FileStat:
        """Size, type, mode and time of a file."""
        return self._stat(path, user)

    @operation("removeWorkspaceFile")
    def remove(self, path: str, *, user: Optional[str] = None, recursive: Optional[bool] = None) -> None:
        """Deletes a file or a directory."""
        self._api.bytes("DELETE", self._at(path, user=user, recursive=recursive))


class Files(Tree):
    """The files of a sandbox. Relative paths begin in its working directory."""

    @operation("readFile", fields={"Range": "offset"}, fixed=("signature", "expires"))
    def read(self, path: str, *, user: Optional[str] = None, offset: Optional[int] = None, length: Optional[int] = None) -> bytes:
        """The content of a file, or a part of it."""
        return self._read(path, user, offset, length)

    @operation("readFile", fixed=("list", "cursor"))
    def list(self, path: str = "", *, user: Optional[str] = None, depth: Optional[int] = None, limit: Optional[int] = None) -> List[models.FileInfo]:
        """The entries of a directory; with `depth` also those of directories in it. `limit` is the size of a page."""
        return self._list(path, user, depth, limit)

    @operation("readFile")
    def chunks(self, path: str, *, user: Optional[str] = None, archive: Optional[Literal["tar"]] = None) -> Iterator[bytes]:
        """The content of a file as it arrives, of any size; with `archive` a directory as a tar archive."""
        return self._chunks(self._at(path, user=user, archive=archive))

    @operation("readFile", fixed=("archive",))
    def download(self, path: str, into: Union[str, "os.PathLike[str]"], *, user: Optional[str] = None) -> List[Path]:
        """Copies a file to a file, or the regular files of a directory below one, to this machine."""
        if (self._stat(path, user)).type != "directory":
            with open(into, "wb") as out:
                for chunk in self._chunks(self._at(path, user=user)):
                    out.write(chunk)
            return [Path(into)]
        with tempfile.TemporaryFile() as file:
            for chunk in self._chunks(self._at(path, user=user, archive="tar")):
                file.write(chunk)
            file.seek(0)
            return unpack(file, into)

    @operation("writeFile", fixed=("signature", "expires"))
    def write(self, path: str, content: Content, *, user: Optional[str] = None, append: Optional[bool] = None, mode: Optional[str] = None) -> models.FileInfo:
        """Writes a file of any size; missing directories are created. An interrupted write leaves the old file."""
        return models.FileInfo._of(self._api.json("PUT", self._at(path, user=user, append=append, mode=mode), content=content))

    @operation("writeFile", fixed=("archive",))
    def unpack(self, path: str, archive: Content, *, user: Optional[str] = None) -> models.FileSum:
        """Unpacks a tar archive into a directory."""
        where = self._at(path, user=user, archive="tar")
        return models.FileSum._of(self._api.json("PUT", where, content=archive, headers={"Content-Type": "application/x-tar"}, timeout=None))

    @operation("writeFile", fixed=("archive",))
    def upload(self, source: Union[str, "os.PathLike[str]"], path: str, *, user: Optional[str] = None) -> models.FileSum:
        """Copies a file of this machine to a file, or the contents of a directory into one."""
        if not Path(source).is_dir():
            with open(source, "rb") as file:
                written = self.write(path, file, user=user)
            return models.FileSum(files=1, directories=0, bytes=written.size, skipped=0)
        with pack(source) as archive:
            return self.unpack(path, archive, user=user)

    @operation("uploadFiles", fields={"files": "files"})
    def write_many(self, path: str, files: Mapping[str, Content], *, user: Optional[str] = None) -> List[models.FileInfo]:
        """Writes several files, by their names, into a directory in one request."""
        kind, body = multipart(files)
        answer = self._api.json("POST", self._at(path, user=user), content=body, headers={"Content-Type": kind})
        return [models.FileInfo._of(each) for each in answer["files"]]

    @operation("statFile", fixed=("signature", "expires"))
    def stat(self, path: str, *, user: Optional[str] = None) -> FileStat:
        """Size, type, mode and time of a file; a symlink is followed."""
        return self._stat(path, user)

    @operation("statPath")
    def info(self, path: str, *, user: Optional[str] = None) -> models.FileInfo:
        """What is at a path; a symlink is reported as such."""
        return models.FileInfo._of(self._api.json("GET", f"{self._root}/fs/stat{query({'path': self._absolute(path), 'user': user})}"))

    @operation("removeFile")
    def remove(self, path: str, *, user: Optional[str] = None, recursive: Optional[bool] = None) -> None:
        """Deletes a file; with `recursive` also a directory that is not empty."""
        self._api.bytes("DELETE", self._at(path, user=user, recursive=recursive))

    @operation("moveFile", fields={"from": "source", "to": "target"})
    def move(self, source: str, target: str, *, user: Optional[str] = None, overwrite: Optional[bool] = None) -> models.MoveFileAnswer:
        """Moves or renames a file or directory."""
        body = given(from_=self._absolute(source), to=self._absolute(target), user=user, overwrite=overwrite)
        return models.MoveFileAnswer._of(self._api.json("POST", f"{self._root}/fs/move", body, timeout=None))

    @operation("copyFile", fields={"from": "source", "to": "target"})
    def copy(
        self, source: str, target: str, *, user: Optional[str] = None, overwrite: Optional[bool] = None, recursive: Optional[bool] = None
    ) -> models.FileSum:
        """Copies a file; with `recursive` a directory."""
        body = given(from_=self._absolute(source), to=self._absolute(target), user=user, overwrite=overwrite, recursive=recursive)
        return models.FileSum._of(self._api.json("POST", f"{self._root}/fs/copy", body, timeout=None))

    @operation("makeDirectory")
    def mkdir(self, path: str, *, user: Optional[str] = None, mode: Optional[str] = None, parents: Optional[bool] = None) -> None:
        """Creates a directory, by default with those above it."""
        self._api.json("POST", f"{self._root}/fs/mkdir", given(path=self._absolute(path), user=user, mode=mode, parents=parents))

    @operation("changeMode")
    def chmod(
        self, path: str, mode: Optional[str] = None, *, owner: Optional[str] = None, user: Optional[str] = None, recursive: Optional[bool] = None
    ) -> int:
        """Changes mode, owner or both; returns how many files were changed."""
        body = given(path=self._absolute(path), mode=mode, owner=owner, user=user, recursive=recursive)
        return models.ChangeModeAnswer._of(self._api.json("POST", f"{self._root}/fs/chmod", body, timeout=None)).changed

    @operation("findFiles")
    def find(
        self, pattern: str, path: str = "", *, user: Optional[str] = None, type: Optional[FileKind] = None, limit: Optional[int] = None
    ) -> models.FileFound:
        """Finds files by name: `*.py`, or `src/**/*.c`."""
        body = given(path=self._absolute(path), pattern=pattern, user=user, type=type, limit=limit)
        return models.FileFound._of(self._api.json("POST", f"{self._root}/fs/find", body, timeout=None))

    @operation("grepFiles")
    def grep(
        self,
        pattern: str,
        path: str = "",
        *,
        regex: Optional[bool] = None,
        ignore_case: Optional[bool] = None,
        include: Optional[str] = None,
        user: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> models.FileMatches:
        """Searches text in files."""
        body = given(path=self._absolute(path), pattern=pattern, regex=regex, ignore_case=ignore_case, include=include, user=user, limit=limit)
        return models.FileMatches._of(self._api.json("POST", f"{self._root}/fs/grep", body, timeout=None))

    @operation("replaceInFile")
    def replace(self, path: str, old: str, new: str, *, count: Optional[int] = None, user: Optional[str] = None) -> models.ReplaceInFileAnswer:
        """Replaces text in a file; Conflict if the file does not contain it."""
        body: Dict[str, Any] = {"path": self._absolute(path), "old": old, "new": new, **given(count=count, user=user)}
        return models.ReplaceInFileAnswer._of(self._api.json("POST", f"{self._root}/fs/replace", body))

    @operation("signUrl")
    def sign(self, path: str, *, method: Literal["GET", "PUT"] = "GET", expires_seconds: int = 3600, user: Optional[str] = None) -> models.SignUrlAnswer:
        """A URL for one file that needs no key. `client.urls` uses such URLs, and so does any HTTP client."""
        body = given(path=self._absolute(path), method=method, expires_seconds=expires_seconds, user=user)
        return models.SignUrlAnswer._of(self._api.json("POST", f"{self._root}/fs/sign", body))

    @operation("watchFiles")
    def watch(self, path: str = "", *, user: Optional[str] = None, recursive: Optional[bool] = None) -> Watch:
        """Changes below a path as they happen."""
        where = f"{self._root}/fs/watch{query({'path': self._absolute(path), 'user': user, 'recursive': recursive})}"
        return Watch(self._api, lambda: self._api.build("GET", where, accept="text/event-stream", timeout=QUIET))

    @operation("createWatcher")
    def watcher(self, path: str = "", *, user: Optional[str] = None, recursive: Optional[bool] = None) -> Watcher:
        """Collects changes on the server, to be fetched with `poll`."""
        body = given(path=self._absolute(path), user=user, recursive=recursive)
        answer = models.CreateWatcherAnswer._of(self._api.json("POST", f"{self._root}/fs/watchers", body))
        return Watcher(self._api, f"{self._root}/fs/watchers/{answer.id}", answer.id)


class Watcher:
    """Changes that the server collects."""

    def __init__(self, api: Api, path: str, id: str) -> None:
        self._api, self._path, self.id = api, path, id

    @operation("pollWatcher")
    def poll(self) -> models.FileNews:
        """The changes since the last call."""
        return models.FileNews._of(self._api.json("GET", self._path))

    @operation("removeWatcher")
    def remove(self) -> None:
        self._api.bytes("DELETE", self._path)

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.remove()
        except PaddockError:
            pass  # it is removed with its sandbox, and after ten minutes


class Urls:
    """Files by the signed URLs of `files.sign`. No key is sent."""

    def __init__(self, api: Api) -> None:
        self._api = api

    @operation("readFile", fields={"signature": "url", "expires": "url", "user": "url"})
    def read(self, url: str) -> bytes:
        return self._api.bytes("GET", url, authorize=False)

    @operation("writeFile", fields={"signature": "url", "expires": "url", "user": "url"})
    def write(self, url: str, content: Content) -> models.FileInfo:
        return models.FileInfo._of(self._api.json("PUT", url, content=content, authorize=False))

    @operation("statFile", fields={"signature": "url", "expires": "url", "user": "url"})
    def stat(self, url: str) -> FileStat:
        request = self._api.build("HEAD", url, authorize=False)
        response = self._api.send(request)
        self._api.body(request, response)
        return FileStat(headers_of(response))
