/*
 * JavaScript in a process of its own, for /v1/nodejs/execute and /v1/code/execute.
 */
#pragma once

#include "aio_impl.h"

struct aio_node_wish {
	struct view code, cwd, version;
	struct view input; /* p == NULL: no stdin */
	struct json_strmap files;
	uint64_t timeout_s;
	bool unified; /* the answer is the one of /v1/code */
};

void aio_node_start(struct request *r, const struct aio_node_wish *w);
