/*
 * The common start and end of the programs that the keeper starts. Their differences are in their
 * main.c; confine.h drops their privileges.
 */
#pragma once

#include "err.h"

struct loop;

/* The first thing in main: the log under this name, and no SIGPIPE. */
void service_init(const char *name);
/* The number in an environment variable of the keeper's. */
int service_number(const char *variable, uint32_t *ret, struct err *e) _must_check_;
/* Nothing is inherited from this fd on. */
int service_close_from(unsigned first, struct err *e) _must_check_;
/* How many fds it may have; 0: as many as it may allow itself. Less than wished is bearable: what needs one
 * more fails by itself. */
void service_limit_fds(unsigned n);
/* For a program without files: as `uid`, which `setting` named, with the fds that it has and the calls of
 * the filter. Should: end so. Mustn't: go on when a step fails. */
int service_drop(const char *setting, uint32_t uid, void (*filter)(uint8_t *rules),
		 struct err *e) _must_check_;
/* What main returns: where it could not start, and after the loop was stopped. */
int service_fail(const struct err *e);
int service_run(struct loop *l);
