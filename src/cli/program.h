/*
 * The daemon's program, which `serve` becomes and `doctor` asks.
 */
#pragma once

#include "err.h"
#include "view.h"

#define PROGRAM_PATH_MAX 4096

/* Finds `name` beside this very program, else in ../libexec/paddock; never in
 * PATH, which the caller of a root command may not control. */
int program_find(const char *name, char ret[PROGRAM_PATH_MAX], struct err *e) _must_check_;
/* Becomes it, with `config` in a sealed memfd as fd 3, nothing else but 0 to 2. Returns only to fail. */
int program_become(const char *path, char *const argv[], struct view config, struct err *e) _must_check_;
/* Runs it to its end, with `config` likewise: the exit code. */
int program_run(const char *path, char *const argv[], struct view config, struct err *e) _must_check_;
