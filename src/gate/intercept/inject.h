/*
 * The secrets of one request: which ones its rule and its placeholders ask for, and its target,
 * headers and body with the secrets filled in. The same for HTTP/1.1 and HTTP/2. Pure: the caller asks
 * the vault between inject_choose and inject_ready.
 */
#pragma once

#include "http_header.h"
#include "mask.h"
#include "place.h"
#include "policy.h"

#define INJECT_VALUES  32
#define INJECT_VALUE   (64u * 1024)       /* bytes of a secret */
#define INJECT_HEADERS 128                /* of a request */
#define INJECT_HEAD    (48u * 1024)       /* all of them together */
#define INJECT_BODY    (1024u * 1024)     /* a body with placeholders up to here keeps a length */
#define INJECT_OUT     (4u * 1024 * 1024) /* what a head or such a body may become */

/* A secret that is fetched for this request. */
struct inject_value {
	char name[PLACE_NAME + 1];
	struct buf value; /* secret */
	bool there;
};

struct inject {
	struct policy_inject
		rules[POLICY_INJECTS]; /* of the rule that allowed the request: a copy, it may change */
	size_t n;
	struct inject_value values[INJECT_VALUES];
	unsigned n_values;
	char trouble[256]; /* after a failure: a sentence for the client */
};

struct inject_head {
	struct view path, query; /* query.p NULL: there is none */
	const struct http_header *headers;
	size_t n_headers;
};

void inject_init(struct inject *j, const struct policy_inject *rules, size_t n);
void inject_done(struct inject *j); /* wipes; may be begun anew */
/* Which values are wanted: j->values, each to be filled by inject_give. False: see j->trouble. */
bool inject_choose(struct inject *j, const struct inject_head *h, bool body) _must_check_;
void inject_give(struct inject *j, struct view name, struct view value);
/* All were asked for: whether what must be there is, and fits. */
bool inject_ready(struct inject *j) _must_check_;
int inject_mask(const struct inject *j, struct mask *m) _must_check_; /* -ENOMEM */
bool inject_has_placeholders(const struct inject *j);
/* A header of the client's that does not go on: of the connection, of compression, or replaced by a secret.
 */
bool inject_drops(const struct inject *j, struct view name);
/* -ENOENT with j->trouble for a placeholder without a value, -EINVAL for a value that does not fit, -ENOBUFS.
 */
int inject_header(struct inject *j, struct http_header h, struct buf *out) _must_check_; /* the value */
int inject_target(struct inject *j, const struct inject_head *h, struct buf *out) _must_check_;
int inject_body(struct inject *j, struct view text, struct buf *out) _must_check_;
/* The value of the header that j->rules[i] sets, which has one. */
int inject_own(const struct inject *j, size_t i, struct buf *out) _must_check_;
/* An answer that says so cannot be looked through. */
bool inject_is_coded(struct http_header h);
