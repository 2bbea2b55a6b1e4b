/*
 * `secrets` of one command, process or execution: read from the vault and handed on as
 * variables. The request's memory is wiped from then on.
 */
#pragma once

#include "rest_impl.h"
#include "spec.h"

/* What a handler keeps in its body, beside the field `secrets` of the schema. */
struct rest_variables {
	const struct json *wish; /* as it was sent */
	struct spec_secrets list;
	struct json_strmap *into; /* the values, before `go` */
	void (*go)(struct request *r, void *body);
	void *body;
	struct request *r;
};

/* Zeroed, of the request's memory. NULL: it has been answered. */
void *rest_variables_body(struct request *r, size_t size);
/* Calls v->go(r, body), at once where there are none; else answers what is wrong. `body` lies in the
 * request's arena, and `v` and `into` in it. */
void rest_variables_fetch(struct request *r, struct rest_variables *v, struct json_strmap *into,
			  void (*go)(struct request *r, void *body), void *body);
