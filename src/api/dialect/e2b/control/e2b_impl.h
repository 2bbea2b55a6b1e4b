/*
 * E2B's control plane, spelled with the core's operations: what its files share.
 * Requests, routes and answers are those of src/api/serve.
 * Owns no state. What E2B's API can say and this installation cannot do is refused
 * (501), never ignored, unless that is only stricter than what was asked for.
 */
#pragma once

#include "answer.h"
#include "box.h"
#include "template.h"

#define E2B_ENVD_VERSION "0.6.13"
#define E2B_CLIENT       "paddock"
#define E2B_TIMEOUT      300 /* seconds, of the second generation */
#define E2B_TIMEOUT_OLD  15  /* of the first */

extern const struct route e2b_boxes_routes[], e2b_life_routes[], e2b_observe_routes[], e2b_copies_routes[],
	e2b_network_routes[], e2b_volumes_routes[], e2b_content_routes[], e2b_secrets_routes[],
	e2b_templates_routes[], e2b_builds_routes[], e2b_absent_routes[];

/* As request_read, but an empty body is an empty object. On failure the answer is sent. */
int e2b_read(struct request *r, const struct json_schema *s, void *out) _must_check_;

/* What a template's name means here: the default image, a template's build, a snapshot or an image. */
struct e2b_template {
	struct view image, snapshot;        /* one of them, or none: the default image */
	const struct template_build *build; /* whose snapshot it is; NULL: none's */
};
int e2b_find_template(struct request *r, struct view name, struct e2b_template *ret,
		      struct err *e) _must_check_;
/* The id, and the name, of what the box was made from. */
struct view e2b_template_of(const struct request *r, const struct box *b);
struct view e2b_alias_of(const struct request *r, const struct box *b);
bool e2b_is_default(struct view template);

/* Tokens and domain, into an open object. */
void e2b_put_access(struct json_out *o, struct request *r, const struct box *b);
/* What create, connect and fork answer. */
void e2b_put_sandbox(struct json_out *o, struct request *r, const struct box *b);
void e2b_reply_sandbox(struct request *r, int status, const struct box *b);
/* E2B knows two states; a box that does not run keeps its files, and that is "paused". */
const char *e2b_state(const struct box *b);
/* A number of seconds to live that the core takes. ERR_INVALID. */
int e2b_take_timeout(const struct request *r, uint64_t seconds, uint64_t *ret, struct err *e) _must_check_;
