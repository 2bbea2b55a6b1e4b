/*
 * The files of an agent as they lie on this machine: a directory or an archive. A manifest is read from
 * either; an archive is looked through before anything of it is sent.
 */
#pragma once

#include "buf.h"
#include "source.h"

#define AGENT_FILES_MANIFEST     "assegai.json"
#define AGENT_FILES_MANIFEST_MAX (64u << 10)

/* The text of assegai.json. An archive is refused that names files outside of itself, has other things than
 * files, directories and links, has no manifest at its top or more than one, or is larger than anything that
 * an agent needs. */
int agent_files_manifest(const char *path, struct buf *out, struct err *e) _must_check_;
/* Of an archive that is open; `name` tells by which program it is unpacked. Reads it from its beginning. */
int agent_files_manifest_fd(int fd, const char *name, struct buf *out, struct err *e) _must_check_;
/* A stream of the files: of a directory without what git ignores, and never node_modules, .git, .venv,
 * __pycache__ and .env. */
int agent_files_open(struct source *s, const char *path, struct err *e) _must_check_;
/* Whether it is an archive by its name. */
bool agent_files_is_archive(const char *name);
