"""AIO's /v1/file: every route, for success and for failure, with the answer's shape checked against the document."""

import base64
import http.client
import json

import pytest

import aio_shapes


@pytest.fixture
def room(place):
    """A directory of the test's own."""
    return place


def ask(box, route, **document):
    found = aio_shapes.call(box.client, box, "POST", f"/v1/file/{route}", document)
    assert found.get("success") is True, found
    return found["data"]


def refused(box, route, **document):
    """The FileOperationError."""
    found = aio_shapes.call(box.client, box, "POST", f"/v1/file/{route}", document)
    assert found["success"] is False and found["message"], found
    data = found["data"]
    assert data["message"] == found["message"] and data["error_type"] and data["operation"], data
    return data


def unprocessable(box, route, field, **document):
    found = aio_shapes.call(box.client, box, "POST", f"/v1/file/{route}", document)
    assert found["detail"][0]["loc"] == (["body", field] if field else ["body"]), found
    return found["detail"][0]["msg"]


def text(box, path):
    return box.check(["cat", path])


# ---- read, write, replace, search ----

def test_read_and_write(box, room):
    path = f"{room}/a.txt"
    assert ask(box, "write", file=path, content="one\ntwo\nthree\n") == {"file": path, "bytes_written": 14}
    assert ask(box, "read", file=path) == {"file": path, "content": "one\ntwo\nthree\n"}
    assert ask(box, "read", file=path, start_line=1)["content"] == "two\nthree"
    assert ask(box, "read", file=path, start_line=1, end_line=2)["content"] == "two"
    assert ask(box, "read", file=path, end_line=1)["content"] == "one"
    assert ask(box, "read", file=path, end_line=0)["content"] == ""
    assert ask(box, "read", file=path, start_line=9)["content"] == ""
    assert ask(box, "read", file=path, start_line=None, end_line=None, sudo=None)["content"] == "one\ntwo\nthree\n"
    assert ask(box, "write", file=path, content="four", append=True, leading_newline=True,
               trailing_newline=True)["bytes_written"] == 6
    assert text(box, path) == "one\ntwo\nthree\n\nfour\n"
    raw = bytes(range(256))
    assert ask(box, "write", file=path, content=base64.b64encode(raw).decode(), encoding="base64",
               trailing_newline=True)["bytes_written"] == 256
    assert box.client.get(box.file_path(path)).body == raw
    assert "UTF-8" in refused(box, "read", file=path)["message"]
    assert ask(box, "write", file=path, content="é", encoding="raw")["bytes_written"] == 2
    large = "x" * 100 + "\n"
    ask(box, "write", file=path, content=large * 30000)
    assert ask(box, "read", file=path)["content"] == large * 30000


def test_relative_paths_lie_in_the_workspace(box, room):
    where = box.get()["workdir"]
    done = ask(box, "write", file="relative.txt", content="r")
    assert done["file"] == f"{where}/relative.txt" and text(box, done["file"]) == "r"


def test_read_and_write_refused(box, room):
    error = refused(box, "read", file=f"{room}/none")
    assert error["path"] == f"{room}/none" and error["operation"] == "read"
    assert error["errno"] == 2 and error["errno_name"] == "ENOENT" and error["error_type"] == "not_found"
    assert refused(box, "read", file=room)["message"]
    box.check(f"echo x > {room}/roots; chmod 600 {room}/roots", user="root")
    assert refused(box, "read", file=f"{room}/roots")["errno_name"] == "EACCES"
    assert refused(box, "write", file="/etc/passwd", content="")["errno_name"] in ("EACCES", "EPERM")
    assert refused(box, "write", file=f"{room}/x", content="@@", encoding="base64")["message"]
    assert refused(box, "read", file="/dev/zero")["message"]
    unprocessable(box, "read", "file")
    unprocessable(box, "write", "content", file="x")
    unprocessable(box, "write", "encoding", file="x", content="", encoding="utf-16")
    unprocessable(box, "read", "end_line", file="x", start_line=5, end_line=2)
    unprocessable(box, "read", "start_line", file="x", start_line=-1)
    box.check(f"truncate -s 20M {room}/big; seq 3 > {room}/tail; cat {room}/big >> {room}/tail")
    assert "download" in refused(box, "read", file=f"{room}/big")["message"]
    assert ask(box, "read", file=f"{room}/tail", start_line=1, end_line=3)["content"] == "2\n3"


def test_sudo(box, room, make_box):
    path = f"{room}/root.txt"
    ask(box, "write", file=path, content="mine", sudo=True)
    assert box.check(["stat", "-c", "%U", path]) == "root\n"
    box.check(f"sudo chmod 600 {path}")
    assert refused(box, "read", file=path)["errno_name"] == "EACCES"
    assert ask(box, "read", file=path, sudo=True)["content"] == "mine"
    assert ask(box, "replace", file=path, old_str="mine", new_str="ours", sudo=True)["replaced_count"] == 1
    assert ask(box, "search", file=path, regex="^o", sudo=True)["matches"] == ["ours"]
    other = make_box(sudo=False)
    assert "no sudo" in refused(other, "read", file="/etc/shadow", sudo=True)["message"]


def test_replace(box, room):
    path = f"{room}/r.txt"
    ask(box, "write", file=path, content="a b a\n")
    assert ask(box, "replace", file=path, old_str="a", new_str="longer") == {"file": path, "replaced_count": 2}
    assert text(box, path) == "longer b longer\n"
    assert ask(box, "replace", file=path, old_str="absent", new_str="")["replaced_count"] == 0
    assert refused(box, "replace", file=f"{room}/none", old_str="a", new_str="b")["operation"] == "replace"
    unprocessable(box, "replace", "old_str", file=path, old_str="", new_str="b")


def test_search(box, room):
    path = f"{room}/s.txt"
    long = "needle " + "y" * 3000
    ask(box, "write", file=path, content=f"one\nneedle 1\r\nthree\n{long}\n")
    assert ask(box, "search", file=path, regex="needle [1y]") == \
        {"file": path, "matches": ["needle 1", long], "line_numbers": [1, 3]}
    assert ask(box, "search", file=path, regex="nothing")["matches"] == []
    assert refused(box, "search", file=f"{room}/none", regex="x")["errno_name"] == "ENOENT"
    assert "pattern" in refused(box, "search", file=path, regex="(")["message"]
    unprocessable(box, "search", "regex", file=path)


# ---- find, glob, list ----

@pytest.fixture
def tree(box, room):
    box.check(f"cd {room} && mkdir -p src/deep .git node_modules/m && echo 1234 > top.py && echo 1 > src/b.py && "
              "echo 12 > src/deep/c.py && echo x > .git/config && echo x > node_modules/m/i.js && "
              "echo x > README && ln -s src link && touch -d 2001-01-01 src/b.py")
    return room


def test_find(box, tree):
    assert ask(box, "find", path=tree, glob="*.py") == \
        {"path": tree, "files": [f"{tree}/src/b.py", f"{tree}/src/deep/c.py", f"{tree}/top.py"]}
    assert ask(box, "find", path=tree, glob="src/*.py")["files"] == [f"{tree}/src/b.py"]
    assert ask(box, "find", path=tree, glob="*.none")["files"] == []
    assert refused(box, "find", path=f"{tree}/none", glob="*")["errno_name"] == "ENOENT"
    unprocessable(box, "find", "glob", path=tree)


def test_glob(box, tree):
    found = ask(box, "glob", path=tree, pattern="**/*.py")
    assert [f["path"] for f in found["files"]] == [f"{tree}/src/b.py", f"{tree}/src/deep/c.py", f"{tree}/top.py"]
    assert found["total_count"] == 3 and found["truncated"] is False and found["pattern"] == "**/*.py"
    first = found["files"][0]
    assert first["name"] == "b.py" and first["size"] == 2 and first["modified_time"].startswith("2001-01-01T")
    assert [f["name"] for f in ask(box, "glob", path=tree, pattern="*.py")["files"]] == ["top.py"]
    cut = ask(box, "glob", path=tree, pattern="**/*.py", max_results=1, sort_by="size", sort_desc=True)
    assert [f["name"] for f in cut["files"]] == ["top.py"] and cut["truncated"] and cut["total_count"] == 3
    assert [f["name"] for f in ask(box, "glob", path=tree, pattern="**/*.py", sort_by="modified")["files"]][0] == "b.py"
    plain = ask(box, "glob", path=tree, pattern="**", exclude=["node_modules", "*.py"], include_metadata=False)
    assert [f["path"] for f in plain["files"]] == [f"{tree}/README"] and "size" not in plain["files"][0]
    hidden = ask(box, "glob", path=tree, pattern="**", include_hidden=True, files_only=False)
    names = {f["path"][len(tree) + 1:]: f["is_directory"] for f in hidden["files"]}
    assert names[".git/config"] is False and names["src"] is True
    assert refused(box, "glob", path=f"{tree}/none", pattern="*")["operation"] == "glob"
    unprocessable(box, "glob", "sort_by", path=tree, pattern="*", sort_by="colour")
    unprocessable(box, "glob", "max_results", path=tree, pattern="*", max_results=0)


def test_list(box, tree):
    found = ask(box, "list", path=tree)
    assert [f["name"] for f in found["files"]] == [".git", "README", "link", "node_modules", "src", "top.py"]
    assert (found["total_count"], found["directory_count"], found["file_count"]) == (6, 4, 2)
    by_name = {f["name"]: f for f in found["files"]}
    assert by_name["top.py"]["size"] == 5 and by_name["top.py"]["extension"] == ".py"
    assert by_name["README"]["extension"] is None and by_name["top.py"]["permissions"] is None
    assert by_name["top.py"]["path"] == f"{tree}/top.py" and by_name["link"]["is_directory"]
    shown = ask(box, "list", path=tree, show_hidden=False, include_permissions=True, include_size=False,
                sort_by="type", sort_desc=True)
    assert [f["name"] for f in shown["files"]][0] == "top.py" and shown["files"][0]["permissions"] == "644"
    assert ".git" not in [f["name"] for f in shown["files"]] and shown["files"][0]["size"] is None
    deep = ask(box, "list", path=tree, recursive=True, file_types=[".py"])
    assert [f["name"] for f in deep["files"] if not f["is_directory"]] == ["b.py", "c.py", "top.py"]
    two = ask(box, "list", path=tree, recursive=True, max_depth=2, file_types=["py"])
    assert [f["name"] for f in two["files"] if not f["is_directory"]] == ["b.py", "top.py"]
    assert refused(box, "list", path=f"{tree}/top.py")["errno_name"] == "ENOTDIR"
    unprocessable(box, "list", "path")
    unprocessable(box, "list", "sort_by", path=tree, sort_by="colour")


def test_list_says_where_it_stops(box, room):
    """A tree is walked 64 levels down; whoever asked for more is told that there may be more."""
    box.check(f"cd {room} && for i in $(seq 66); do mkdir d && cd d || exit 1; done")

    def listed(**more):
        found = aio_shapes.call(box.client, box, "POST", "/v1/file/list", {"path": room, "recursive": True, **more})
        assert found["success"], found
        return found["data"]["total_count"], found["hint"]

    for more in ({}, {"max_depth": 65}):
        count, hint = listed(**more)
        assert count == 64 and "64 levels" in hint, (more, count, hint)
    assert listed(max_depth=64) == (64, None) and listed(max_depth=3) == (3, None)


def test_failures_have_what_clients_insist_on(box, room):
    """The published client reads the data of a failure as a result."""
    none = f"{room}/none"
    assert refused(box, "read", file=none)["content"] == "" and refused(box, "read", file=none)["file"] == none
    assert refused(box, "write", file="/proc/none", content="")["file"] == "/proc/none"
    assert refused(box, "replace", file=none, old_str="a", new_str="b")["file"] == none
    assert refused(box, "search", file=none, regex="a")["file"] == none
    assert refused(box, "glob", path=none, pattern="*")["pattern"] == "" and refused(box, "grep", path=none, pattern="a")["pattern"] == ""
    edited = refused(box, "str_replace_editor", command="view", path=none)
    assert edited["output"] == "" and edited["prev_exist"] is False and edited["error"] == edited["message"]


# ---- grep ----

@pytest.fixture
def corpus(box, room):
    box.check(f"cd {room} && mkdir -p a/b node_modules && printf '1\\n2\\nTODO one\\n4\\n5\\n' > a/x.py && "
              "printf 'TODO two\\r\\nlast TODO\\n' > a/b/y.js && echo TODO > node_modules/z.js && "
              "printf 'top todo\\n' > top.md && (seq 400000; echo TODO) > large.txt && "
              "printf 'TODO\\0' > binary")
    return room


def lines(found):
    return [(m["file"].rsplit("/", 1)[1], m["line_number"], m["line_content"]) for m in found["matches"]]


def test_grep(box, corpus):
    found = ask(box, "grep", path=corpus, pattern="TODO", exclude=["node_modules"])
    assert sorted(lines(found)) == [("x.py", 3, "TODO one"), ("y.js", 1, "TODO two"), ("y.js", 2, "last TODO")]
    assert found["match_count"] == 3 and found["files_matched"] == 2 and not found["truncated"]
    assert found["path"] == corpus and found["pattern"] == "TODO" and found["files_searched"] is None
    assert "context_before" not in found["matches"][0]
    every = ask(box, "grep", path=corpus, pattern="todo", case_insensitive=True, max_file_size="10M")
    assert {n for n, _, _ in lines(every)} == {"x.py", "y.js", "z.js", "top.md", "large.txt"}
    assert every["files_searched"] == 5
    assert lines(ask(box, "grep", path=corpus, pattern="TODO", include=["*.py"])) == [("x.py", 3, "TODO one")]
    both = ask(box, "grep", path=corpus, pattern="TODO", include=["*.py", "*.js"], exclude=["b", "node*"])
    assert lines(both) == [("x.py", 3, "TODO one")]
    assert lines(ask(box, "grep", path=corpus, pattern="todo", recursive=False)) == [("top.md", 1, "top todo")]
    assert lines(ask(box, "grep", path=corpus, pattern="TODO", type="py")) == [("x.py", 3, "TODO one")]
    assert lines(ask(box, "grep", path=f"{corpus}/a/x.py", pattern="T[O]DO +one$")) == [("x.py", 3, "TODO one")]
    assert lines(ask(box, "grep", path=corpus, pattern="T[O]DO", fixed_strings=True)) == []
    assert lines(ask(box, "grep", path=f"{corpus}/a", pattern=r"^\d$")) == [("x.py", n, str(n)) for n in (1, 2, 4, 5)]


def test_grep_context_and_pages(box, corpus):
    one = ask(box, "grep", path=f"{corpus}/a/x.py", pattern="TODO", context_before=5, context_after=1)["matches"][0]
    assert one["context_before"] == ["1", "2"] and one["context_after"] == ["4"]
    last = ask(box, "grep", path=f"{corpus}/a/b", pattern="last", context_before=1, context_after=2)["matches"][0]
    assert last["context_before"] == ["TODO two"] and last["context_after"] == []
    pages = []
    for offset in range(0, 12, 3):
        page = ask(box, "grep", path=f"{corpus}/large.txt", pattern="9999[0-9]$", max_file_size="10M",
                   max_results=3, offset=offset)
        pages += [m["line_number"] for m in page["matches"]]
        assert page["truncated"] is True
    assert pages == [int(n) for n in box.check(f"grep -n '9999[0-9]$' {corpus}/large.txt | cut -d: -f1 | head -12")
                     .split()]
    # more than one window of matches, with a file read in between
    many = ask(box, "grep", path=f"{corpus}", pattern="^[0-9]*$", max_file_size="10M", max_results=10000,
               include=["large.txt", "*.py"])
    assert len(many["matches"]) == 10000 and many["truncated"]


def test_grep_refused(box, corpus):
    assert "multiline" in refused(box, "grep", path=corpus, pattern="a.b", multiline=True)["message"]
    assert "cobol" in refused(box, "grep", path=corpus, pattern="a", type="cobol")["message"]
    assert "pattern" in refused(box, "grep", path=corpus, pattern="(")["message"]
    assert refused(box, "grep", path=f"{corpus}/none", pattern="a")["errno_name"] == "ENOENT"
    unprocessable(box, "grep", "pattern", path=corpus)
    unprocessable(box, "grep", "context_before", path=corpus, pattern="a", context_before=21)
    unprocessable(box, "grep", "max_file_size", path=corpus, pattern="a", max_file_size="big")


# ---- upload, download ----

def form(*parts):
    lines = []
    for name, filename, data in parts:
        more = f'; filename="{filename}"' if filename else ""
        lines += [b"--b", f'Content-Disposition: form-data; name="{name}"{more}'.encode(), b"", data]
    return b"\r\n".join(lines + [b"--b--", b""])


def upload(box, body, kind="multipart/form-data; boundary=b"):
    answer = box.client.request("POST", f"/sandbox/{box.id}/v1/file/upload", body, {"Content-Type": kind})
    return aio_shapes.check(answer, "POST", "/v1/file/upload")


def download(box, query):
    answer = box.client.get(f"/sandbox/{box.id}/v1/file/download?{query}")
    aio_shapes.check(answer, "GET", "/v1/file/download")
    return answer


def test_upload(box, room):
    data = bytes(range(256)) * 4096
    done = upload(box, form(("path", None, f"{room}/new/a.bin".encode()), ("file", "x.bin", data)))
    assert done["success"] and done["data"] == {"file_path": f"{room}/new/a.bin", "file_size": len(data), "success": True}
    assert download(box, f"path={room}/new/a.bin").body == data
    late = upload(box, form(("file", "x.bin", b"late"), ("path", None, f"{room}/".encode())))
    assert late["data"]["file_path"] == f"{room}/x.bin" and text(box, f"{room}/x.bin") == "late"
    plain = upload(box, form(("file", "../up.txt", b"u")))["data"]["file_path"]
    assert plain == f"{box.get()['workdir']}/up.txt" and text(box, plain) == "u"
    bad = upload(box, form(("path", None, b"/etc/nothing"), ("file", "x", b"x")))
    assert bad["success"] is False and bad["data"]["errno_name"] == "EACCES" and bad["data"]["operation"] == "upload"
    assert upload(box, form(("file", "x", b"x"), ("path", None, b"/etc/nothing")))["success"] is False
    assert upload(box, form(("path", None, b"x")))["detail"][0]["loc"] == ["body", "file"]
    assert upload(box, b"{}", "application/json")["detail"]
    assert upload(box, b"--b\r\nContent-Disposition: form-data")["detail"]
    assert box.check("ls -A /tmp | grep upload || true") == ""


def test_download(box, room):
    ask(box, "write", file=f"{room}/d.txt", content="0123456789")
    for policy in ("", "&change_policy=ignore", "&change_policy=abort"):
        assert download(box, f"path={room}/d.txt{policy}").body == b"0123456789"
        missing = download(box, f"path={room}/none{policy}")
        assert missing.status == 404 and missing.json()["success"] is False
        assert download(box, f"path={room}{policy}").status == 422
    assert download(box, f"path={room}/d.txt&change_policy=maybe").status == 422
    assert download(box, "").status == 422
    box.check(f"truncate -s 5M {room}/large")
    assert download(box, f"path={room}/large&change_policy=abort").body == bytes(5 << 20)


def test_download_aborts_when_the_file_changes(box, room):
    box.check(f"truncate -s 200M {room}/large")
    client = box.client
    connection = client.start("GET", f"/sandbox/{box.id}/v1/file/download?path={room}/large&change_policy=abort")
    answer = connection.getresponse() if hasattr(connection, "getresponse") else connection
    assert answer.status == 200
    answer.read(1000)
    other = box.with_client(type(client)(client.daemon, client.key))
    other.check(f"echo more >> {room}/large")
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        while answer.read(1 << 20):
            pass
    client.close()
    other.client.close()


# ---- the editor ----

def edit(box, command, path, **more):
    return ask(box, "str_replace_editor", command=command, path=path, **more)


def test_editor(box, room):
    path = f"{room}/e.txt"
    made = edit(box, "create", path, file_text="one\ntwo\ntwo\n")
    assert made["prev_exist"] is False and made["new_content"] == "one\ntwo\ntwo\n" and made["old_content"] is None
    assert edit(box, "view", path)["output"].endswith(":\n     1\tone\n     2\ttwo\n     3\ttwo\n")
    assert edit(box, "view", path, view_range=[2, -1])["output"].endswith(":\n     2\ttwo\n     3\ttwo\n")
    assert edit(box, "view", path, view_range=[1, 1])["output"].endswith(":\n     1\tone\n")
    done = edit(box, "str_replace", path, old_str="one", new_str="ONE")
    assert done["old_content"] == "one\ntwo\ntwo\n" and done["new_content"] == "ONE\ntwo\ntwo\n"
    edit(box, "str_replace", path, old_str="two", new_str="2", replace_mode="LAST")
    assert text(box, path) == "ONE\ntwo\n2\n"
    edit(box, "insert", path, insert_line=1, new_str="between")
    assert text(box, path) == "ONE\nbetween\ntwo\n2\n"
    for content in ("ONE\ntwo\n2\n", "ONE\ntwo\ntwo\n", "one\ntwo\ntwo\n"):
        assert edit(box, "undo_edit", path)["new_content"] == content and text(box, path) == content
    gone = edit(box, "undo_edit", path)
    assert gone["prev_exist"] is True and gone["new_content"] is None
    assert box.exec(["test", "-e", path]).exit_code == 1
    assert "history" in refused(box, "str_replace_editor", command="undo_edit", path=path)["message"]


def test_editor_modes_and_directories(box, room):
    path = f"{room}/m.txt"
    edit(box, "create", path, file_text="a a a")
    assert edit(box, "str_replace", path, old_str="a", new_str="b", replace_mode="FIRST")["new_content"] == "b a a"
    assert edit(box, "str_replace", path, old_str="a", replace_mode="ALL")["new_content"] == "b  "
    assert edit(box, "insert", path, insert_line=0, new_str="top")["new_content"] == "top\nb  "
    box.check(f"mkdir -p {room}/d/e/f && touch {room}/.hidden {room}/d/e/f/deep")
    shown = edit(box, "view", room)["output"].splitlines()[1:]
    assert shown == [f"{room}/", f"{room}/d/", f"{room}/d/e/", f"{room}/m.txt"]


def test_editor_keeps_ten_edits(box, room):
    path = f"{room}/n.txt"
    edit(box, "create", path, file_text="0")
    for n in range(12):
        edit(box, "str_replace", path, old_str=str(n), new_str=str(n + 1))
    for _ in range(10):
        edit(box, "undo_edit", path)
    assert text(box, path) == "2"
    refused(box, "str_replace_editor", command="undo_edit", path=path)


def test_editor_refused(box, room):
    path = f"{room}/r.txt"
    edit(box, "create", path, file_text="x\nx\n")

    def no(**more):
        return refused(box, "str_replace_editor", **{"path": path, **more})["message"]

    assert "write" in no(command="create", file_text="y") and text(box, path) == "x\nx\n"
    assert "2 times" in no(command="str_replace", old_str="x", new_str="y")
    assert "verbatim" in no(command="str_replace", old_str="z", new_str="y")
    assert "different" in no(command="str_replace", old_str="x", new_str="x")
    assert "between 0 and 2" in no(command="insert", insert_line=3, new_str="y")
    assert "lines" in no(command="view", view_range=[9, 10])
    assert "page_range" in no(command="view", page_range=[1, 2])
    assert no(command="view", path=f"{room}/none") and no(command="insert", path=f"{room}/none", insert_line=0, new_str="")
    for field, more in (("command", {"command": "delete"}), ("file_text", {"command": "create"}),
                        ("old_str", {"command": "str_replace"}), ("insert_line", {"command": "insert"}),
                        ("view_range", {"command": "view", "view_range": [3, 1]}),
                        ("replace_mode", {"command": "str_replace", "old_str": "x", "replace_mode": "SOME"})):
        unprocessable(box, "str_replace_editor", field, path=path, **more)


# ---- watch ----

def test_watch(box, room):
    made = ask(box, "watch", path=room, debounce=50)
    at = f"watch/{made['watcher_id']}"
    assert made["path"] == room and ask(box, f"{at}/poll")["events"] == []
    box.check(f"echo x > {room}/a.txt; mkdir {room}/.git; echo x > {room}/.git/config")
    first = ask(box, f"{at}/poll", timeout=30)
    assert first["events"][0]["type"] == "create" and first["events"][0]["path"] == f"{room}/a.txt"
    assert not [e for e in first["events"] if ".git" in e["path"]]
    assert ask(box, f"{at}/poll", cursor=first["cursor"])["events"] == []
    assert ask(box, f"{at}/poll", limit=1)["has_more"] is (len(first["events"]) > 1)
    listed = aio_shapes.call(box.client, box, "GET", "/v1/file/watch")["data"]["watchers"]
    assert [w["watcher_id"] for w in listed] == [made["watcher_id"]]
    assert aio_shapes.call(box.client, box, "DELETE", f"/v1/file/{at}")["success"] is True
    assert aio_shapes.call(box.client, box, "DELETE", f"/v1/file/{at}")["success"] is False
    assert aio_shapes.call(box.client, box, "POST", f"/v1/file/{at}/poll", {})["success"] is False
    assert refused(box, "watch", path=f"{room}/none")["errno_name"] == "ENOENT"
    unprocessable(box, "watch", "debounce", path=room, debounce=1)
    unprocessable(box, "watch/x/poll", "limit", limit=0)


def read_events(answer, n):
    """So many Server-Sent Events: [(id, type, data)]."""
    found, id = [], None
    while len(found) < n:
        line = answer.readline().decode().rstrip("\n")
        key, _, value = line.partition(": ")
        if key == "id":
            id = int(value)
        elif key == "event":
            kind = value
        elif key == "data":
            found.append((id, kind, json.loads(value)))
    return found


def test_watch_events(box, room, daemon):
    made = ask(box, "watch", path=room, debounce=50)
    path = f"/sandbox/{box.id}/v1/file/watch/{made['watcher_id']}/events"
    client = daemon.client()
    answer = client.start("GET", path)
    assert answer.status == 200 and answer.getheader("content-type") == "text/event-stream"
    box.check(f"echo x > {room}/a.txt")
    first = read_events(answer, 1)[0]
    assert first[1] == "create" and first[2]["path"] == f"{room}/a.txt" and first[2]["seq"] == first[0] == 1
    client.close()
    # Whoever comes again says what it has seen.
    answer = client.start("GET", path, headers={"Last-Event-ID": "1"})
    box.check(f"rm {room}/a.txt")
    more = read_events(answer, 2)
    assert [e[0] for e in more] == [2, 3] and more[0][1] == "write"
    assert box.client.request("GET", path, headers={"Last-Event-ID": "x"}).status == 422
    # The watch ends, and with it the stream.
    assert aio_shapes.call(box.client, box, "DELETE", f"/v1/file/watch/{made['watcher_id']}")["success"] is True
    answer.read()
    assert aio_shapes.call(box.client, box, "GET", f"/v1/file/watch/{made['watcher_id']}/events")["success"] is False
    client.close()


def test_watch_wait(box, room):
    # Again and again, for a watch that begins late.
    box.exec(f"(until test -e {room}/told; do sleep 0.2; rm -f {room}/late.txt; echo x > {room}/other; echo x > {room}/late.txt; done) >/dev/null 2>&1 &")
    done = ask(box, "watch/wait", path=f"{room}/late.txt", timeout=30, event_types=["create"])
    assert done == {"path": f"{room}/late.txt", "triggered": True, "type": "create"}
    box.check(f"touch {room}/told")
    assert ask(box, "watch/wait", path=f"{room}/never", timeout=1)["triggered"] is False
    assert refused(box, "watch/wait", path=f"{room}/none/x")["errno_name"] == "ENOENT"
    unprocessable(box, "watch/wait", "event_types", path="x", event_types=["open"])
    unprocessable(box, "watch/wait", "timeout", path="x", timeout=301)
