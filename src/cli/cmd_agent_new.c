/*
 * paddock agent new: writes an example of an agent into a new directory.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent_examples.h"
#include "cmd.h"
#include "fd.h"
#include "show.h"

#include "poison.h"

struct new_flags {
	const char *runtime;
};

static const struct opt OPTS[] = {
	{ "runtime", 0, OPT_TEXT, offsetof(struct new_flags, runtime), "RUNTIME",
	  "node (the default) or python" },
};

struct example {
	const char *kind, *runtime, *entry;
	const char *program, *manifest;
	const size_t *program_size, *manifest_size;
};

#define EXAMPLE(name, lang, file)                                                                            \
	{                                                                                                    \
#name, #lang, file, agent_##name##_##lang, agent_##name##_##lang##_manifest,                 \
			&agent_##name##_##lang##_size, &agent_##name##_##lang##_manifest_size,               \
	}
static const struct example EXAMPLES[] = {
	EXAMPLE(monitor, node, "index.js"), EXAMPLE(monitor, python, "main.py"),
	EXAMPLE(dca, node, "index.js"),     EXAMPLE(dca, python, "main.py"),
	EXAMPLE(analyst, node, "index.js"), EXAMPLE(analyst, python, "main.py"),
};

static int put_file(int dir, const char *name, struct view text, struct err *e)
{
	_cleanup_(closep) int fd =
		openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd < 0)
		return err_sys(e, ERR_INVALID, errno, "%s", name);
	return show_bytes(fd, text, e);
}

static int run_new(struct cmd_ctx *ctx _unused_, const void *flags, size_t n _unused_, char **operands,
		   struct err *e)
{
	const struct new_flags *f = flags;
	const char *runtime = f->runtime ? f->runtime : "node";
	const struct example *found = NULL;

	for (size_t i = 0; i < ELEMS(EXAMPLES); i++)
		if (strcmp(operands[0], EXAMPLES[i].kind) == 0 && strcmp(runtime, EXAMPLES[i].runtime) == 0)
			found = &EXAMPLES[i];
	if (!found)
		return err_set(e, ERR_INVALID,
			       "there are the examples monitor, dca and analyst, for node and python");
	if (mkdir(operands[1], 0755) < 0)
		return err_sys(e, ERR_INVALID, errno, "%s", operands[1]);
	_cleanup_(closep) int dir = open(operands[1], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return err_sys(e, ERR_INVALID, errno, "%s", operands[1]);
	if (put_file(dir, "assegai.json", (struct view){ found->manifest, *found->manifest_size }, e) < 0 ||
	    put_file(dir, found->entry, (struct view){ found->program, *found->program_size }, e) < 0)
		return -1;
	fprintf(stderr, "%s has the agent: paddock agent install %s\n", operands[1], operands[1]);
	return 0;
}

const struct cmd cmd_agent_new = {
	.name = "agent new",
	.operands = "monitor|dca|analyst DIR",
	.summary = "write an example of an agent into a new directory",
	.opts = OPTS,
	.n_opts = ELEMS(OPTS),
	.flags_size = sizeof(struct new_flags),
	.lead = OPTS_ANYWHERE,
	.min = 2,
	.max = 2,
	.run = run_new,
};
