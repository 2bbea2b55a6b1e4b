/*
 * What the files of the agentbox dialect share.
 */
#pragma once

#include "answer.h"
#include "dialect.h"
#include "file_text.h"
#include "rpc.h"
#include "run.h"
#include "whole_file.h"

#define AGENTBOX_ROOT        "/workspace"
#define AGENTBOX_DATA        "/mnt/user-data"
#define AGENTBOX_OUTPUTS     AGENTBOX_DATA "/outputs"
#define AGENTBOX_TIMEOUT_S   30
#define AGENTBOX_PIP_S       120
#define AGENTBOX_NOT_FOUND   "Session not found"
#define AGENTBOX_NOT_ALLOWED "Path not allowed"
#define AGENTBOX_TIMED_OUT   "Command timed out"

extern const struct rpc_method agentbox_sessions_methods[], agentbox_exec_methods[], agentbox_files_methods[];
extern const struct surface agentbox_port_surface; /* of port 2024 */
/* How a stranger is refused there. */
void agentbox_port_refuse(struct json_out *o, const struct proxy_refusal *why);

/* NULL and an answer when there is no memory. Zeroed. */
void *agentbox_own(struct request *r, size_t size, void (*release)(struct request *r));

/* Whether there is no such session, rather than no such file or program in one. */
bool agentbox_no_session(const struct err *e);

/* ---- commands: agentbox_exec.c ---- */

/* A command as agentbox runs it: bash -c in workdir ("": AGENTBOX_ROOT). 0 seconds: AGENTBOX_TIMEOUT_S. */
struct exec_wish agentbox_wish(const struct request *r, struct view command, struct view workdir,
			       uint64_t seconds);

/* ---- files: agentbox_files.c ---- */

/* An absolute path in one of the roots, in the request's arena; a relative one is below AGENTBOX_ROOT.
 * p == NULL: it is not allowed. */
struct view agentbox_path(struct request *r, struct view given, bool to_write);

/* In these roots only, also by links. */
struct file_place agentbox_place(struct view box, struct view path, bool to_write);
#define AGENTBOX_READ_MAX (64u * 1024 * 1024)
/* What is wrong with a file that was read; NULL: nothing. */
const char *agentbox_read_error(const struct file_text *f, const struct err *e);
