/*
 * Starts our own programs: fork and exec, with exactly the fds they are given.
 */
#pragma once

#include <sys/types.h>

#include "keeper.h"

/* Executes `program` from our own directory; fds[i] becomes fd 3 + i. */
int child_exec(struct keeper *k, const char *program, char *const argv[], char *const envp[], const int *fds,
	       size_t n, pid_t *ret_pid, int *ret_pidfd) _must_check_;
/* paddock-api: starts it, and again when it dies. */
void child_start_api(struct keeper *k);
void child_stop_api(struct keeper *k);
/* paddock-hook: starts it instead of the one that there may be; the fd is a stream to it. */
int child_start_hook(struct keeper *k, int *ret_fd) _must_check_;
int child_start_ai(struct keeper *k, int *ret_fd) _must_check_; /* paddock-ai: likewise */
/* Where the programs lie: beside ourselves, or ../libexec/paddock. */
int child_find_bin(char *dst, size_t size) _must_check_;
