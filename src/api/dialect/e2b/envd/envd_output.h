/*
 * Start and Connect: the process service's streams of output.
 */
#pragma once

#include "envd_impl.h"

#define ENVD_REF_MAX 160

struct envd_process_selector;

void envd_start(struct request *c, const void *request);
void envd_connect(struct request *c, const void *request);

/* What run.h takes for a process: its pid or its tag. ERR_UNSUPPORTED, ERR_NOT_FOUND */
int envd_ref(const struct envd_process_selector *who, char ret[ENVD_REF_MAX], struct err *e) _must_check_;
/* ERR_NOT_FOUND, in the words that clients know. */
int envd_no_process(const char *ref, struct err *e);
