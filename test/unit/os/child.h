/*
 * For what changes a process for good (dropping, filters, namespaces): the body
 * runs in a forked child, and a check that fails there says which and fails the
 * test. Included after cmocka.h.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "defs.h"

#define CHECK(cond)                                                                                          \
	do {                                                                                                 \
		errno = 0;                                                                                   \
		if (!(cond)) {                                                                               \
			dprintf(2, "# %s:%d: in the child: %s (%m)\n", __FILE__, __LINE__, #cond);           \
			_exit(1);                                                                            \
		}                                                                                            \
	} while (0)
/* The call fails with exactly this errno. */
#define CHECK_FAILS(call, error) CHECK((call) == -1 && errno == (error))

/* The child's wait status. */
static inline int child_status(void (*body)(void *arg), void *arg)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		body(arg);
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static inline void in_child(void (*body)(void *arg), void *arg)
{
	assert_int_equal(child_status(body, arg), 0);
}

#define NEED_ROOT()                                                                                          \
	do {                                                                                                 \
		if (geteuid() != 0) {                                                                        \
			print_message("# skipped: needs root\n");                                            \
			skip();                                                                              \
		}                                                                                            \
	} while (0)
