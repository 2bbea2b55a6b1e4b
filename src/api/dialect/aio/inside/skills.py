# /v1/skills: directories with a SKILL.md, kept in ~/.aio/skills.
import io
import re
import shutil
import tarfile
import tempfile
import zipfile

SKILLS = os.path.join(HOME, "skills")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
FILES, BYTES = 5000, 64 << 20


def check_name(name):
    if not NAME.fullmatch(name):
        refuse("a skill's name is 1 to 64 characters of [A-Za-z0-9._-]")
    return name


def scalar(text):
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text.startswith("[") and text.endswith("]"):
        return [scalar(one) for one in text[1:-1].split(",") if one.strip()]
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"-?\d{1,15}", text):
        return int(text)
    return None if text in ("", "null", "~") else text


def front_matter(text):
    """The metadata and the rest. Of YAML what skills use: scalars, lists, folded texts and one level of keys."""
    lines = text.lstrip("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != "---":
        return {}, text
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    if end is None:
        return {}, text
    found, key, folded = {}, None, False
    for line in lines[1:end]:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        inner = line[0] in " \t-"
        part = re.match(r"\s*([A-Za-z0-9_.-]+):(?:\s+(.*))?$", line)
        if not inner and part:
            key, value = part[1], part[2] or ""
            folded = value.strip() in (">", "|", ">-", "|-")
            found[key] = "" if folded else scalar(value)
        elif key is None:
            continue
        elif folded:
            found[key] = (found[key] + " " + line.strip()).strip()
        elif line.lstrip().startswith("- "):
            found[key] = (found[key] if isinstance(found[key], list) else []) + [scalar(line.lstrip()[2:])]
        elif part:
            found[key] = {**(found[key] if isinstance(found[key], dict) else {}), part[1]: scalar(part[2] or "")}
        else:
            found[key] = f"{found[key] or ''} {line.strip()}".strip()
    return found, "\n".join(lines[end + 1:]).strip("\n") + "\n"


def read(name):
    path = os.path.join(SKILLS, name, "SKILL.md")
    with open(path, encoding="utf-8", errors="replace") as f:
        return front_matter(f.read(MOST))


def about(name):
    return {"name": name, "path": os.path.join(SKILLS, name), "metadata": read(name)[0], "dependency_commands": []}


def names():
    if not os.path.isdir(SKILLS):
        return []
    return sorted(n for n in os.listdir(SKILLS) if os.path.isfile(os.path.join(SKILLS, n, "SKILL.md")))


def is_inside(name):
    parts = name.replace("\\", "/").split("/")
    return not name.startswith("/") and ".." not in parts


def unpack(data, into):
    """An archive, or a SKILL.md alone. Links and names that lead out are refused."""
    def put(name, source, size):
        nonlocal room, count
        room, count = room - size, count - 1
        if not is_inside(name) or room < 0 or count < 0:
            raise ValueError(f"the archive has {name!r}, or too much" if is_inside(name) else f"{name!r} leads out of the archive")
        path = os.path.join(into, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            shutil.copyfileobj(source, f)

    room, count = BYTES, FILES
    if zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as z:
            for one in z.infolist():
                if not one.is_dir():
                    with z.open(one) as f:
                        put(one.filename, f, one.file_size)
        return
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as t:
            for one in t:
                if one.isfile():
                    put(one.name, t.extractfile(one), one.size)
                elif not one.isdir():
                    raise ValueError(f"the archive has {one.name!r}, which is no file")
    except tarfile.ReadError:
        text = data.decode("utf-8", errors="strict")
        put("SKILL.md", io.BytesIO(text.encode()), len(data))


def found_below(root):
    """The directories with a SKILL.md: this one, or those below it that lie in no other."""
    if os.path.isfile(os.path.join(root, "SKILL.md")):
        return [root]
    if not os.path.isdir(root):
        return []
    return [d for one in sorted(os.scandir(root), key=lambda one: one.name) if one.is_dir(follow_symlinks=False)
            for d in found_below(one.path)]


def take(root, given, fallback):
    found = found_below(root)
    if not found:
        refuse("there is no SKILL.md")
    if given and len(found) > 1:
        refuse(f"name is for one skill, and there are {len(found)}")
    made = []
    for one in found:
        with open(os.path.join(one, "SKILL.md"), encoding="utf-8", errors="replace") as f:
            meta = front_matter(f.read(MOST))[0]
        name = check_name(given or str(meta.get("name") or "") or (fallback if one == root else os.path.basename(one)))
        made.append((name, one))
    os.makedirs(SKILLS, exist_ok=True)
    for name, one in made:
        target, fresh = os.path.join(SKILLS, name), tempfile.mkdtemp(dir=SKILLS, prefix=".new-")
        shutil.copytree(one, fresh, dirs_exist_ok=True, symlinks=True)
        os.chmod(fresh, 0o755)
        shutil.rmtree(target, ignore_errors=True)
        os.rename(fresh, target)
    done({"count": len(made), "registered": [about(name) for name, _ in made]})


def register(upload, filename, path, name):
    """upload: a file that is removed behind this, or ""; path: of a directory or an archive."""
    source = upload or path
    fallback = re.sub(r"(\.(zip|tar|tgz|gz|md))+$", "", os.path.basename((filename or path).rstrip("/"))) or "skill"
    try:
        if os.path.isdir(source):
            take(source, name, fallback)
        with tempfile.TemporaryDirectory() as into:
            with open(source, "rb") as f:
                data = f.read(BYTES + 1)
            if len(data) > BYTES:
                refuse(f"a skill has at most {BYTES >> 20} MiB")
            unpack(data, into)
            take(into, name, fallback)
    except (zipfile.BadZipFile, UnicodeDecodeError):
        refuse("this is no zip, no tar and no SKILL.md")
    finally:
        if upload:
            os.unlink(upload)


def one(name):
    if check_name(name) not in names():
        refuse(f"there is no skill {name!r}")
    return name


def main(what, *words):
    if what == "register":
        register(*words)
    if what == "list":
        wanted = [n for n in words[0].split(",") if n] if words else []
        done({"skills": [about(n) for n in names() if not wanted or n in wanted]})
    if what == "content":
        done({"name": one(words[0]), "path": os.path.join(SKILLS, words[0]), "content": read(words[0])[1]})
    if what == "delete":
        gone = about(one(words[0]))
        shutil.rmtree(os.path.join(SKILLS, words[0]))
        done(gone)
    if what == "clear":
        gone = names()
        shutil.rmtree(SKILLS, ignore_errors=True)
        done({"count": len(gone), "deleted": gone})


run(main)
