/*
 * The index of sandboxes (boxes): what is known of each, how one is found, and the tokens that open it.
 */
#pragma once

#include "job.h"
#include "spec.h"
#include "who.h"

struct actor;
struct box;
struct core;
struct tenant;

/*
 * ---- boxes.c ----
 * An index in memory over what the store holds and the keeper runs. What happens to boxes is in box.h.
 */

#define BOX_ID 20

enum box_status { BOX_NONE, BOX_CREATING, BOX_RUNNING, BOX_PAUSED, BOX_STOPPED, BOX_DELETING, BOX_STATUSES };

/* A change between running, paused and stopped that is under way: life.c. */
enum life_step { LIFE_NONE, LIFE_PAUSE, LIFE_RESUME, LIFE_STOP, LIFE_START };

/* What is; the wish is in spec. */
struct box_state {
	enum box_status status;
	int64_t created_ms, expires_ms; /* expires_ms 0: never */
	int64_t used_ms;                /* the last use */
	int64_t disk_used;              /* bytes, when it was last asked for; negative: not known */
	bool from_pool;                 /* it was made ahead; known until the api restarts */
};

/* What a client may know of a box. */
struct box {
	char id[BOX_ID + 1];
	const struct tenant *tenant;
	struct box_spec spec;
	struct box_state state;
	struct box_inside *in; /* the core's own (src/api/core/index/boxes.h) */
};

const char *boxes_status_name(enum box_status s);
enum box_status boxes_status(struct view name); /* BOX_NONE for what is none */
/* ERR_NOT_FOUND, always in the same words. */
int boxes_unknown(struct err *e);

/* By id, or by name within the actor's tenant. NULL and e when there is none that `act` is permitted on. */
struct box *boxes_find(struct core *c, const struct actor *a, int act, struct view id_or_name,
		       struct err *e) _must_check_;

/* To change it, which must wait until it is made. */
struct box *boxes_find_made(struct core *c, const struct actor *a, struct view id_or_name,
			    struct err *e) _must_check_;

/* Paths about one box, "/sandbox/NAME/REST", as several dialects have them: NAME as it stands there (still
 * percent-encoded), to be resolved by boxes_find; *ret_rest is "/REST", or "" behind "/sandbox/NAME". p ==
 * NULL: the path is another one. */
struct view boxes_path(struct view path, struct view *ret_rest);

/* The first that a client may know of and that fits; NULL: none. What finds it must prove that it may. */
const struct box *boxes_match(const struct core *c, bool (*fits)(void *arg, const struct box *b), void *arg);

/* By id alone, also a hidden one: for whoever was permitted to use it before. NULL: it is gone. */
struct box *boxes_by_id(struct core *c, struct view id);

#define BOXES_PAGE_MAX    1000
#define BOXES_CURSOR_SIZE 48
struct box_filter {
	enum box_status status;      /* BOX_NONE: any */
	struct json_strmap metadata; /* all of these */
	struct view cursor;          /* `next` of the page before */
	unsigned limit;              /* 1 … BOXES_PAGE_MAX; for the core's own count any */
	bool newest_first;
	/* What else is asked of it; may be NULL. */
	bool (*fits)(const struct box *b, const void *arg);
	const void *fits_arg;
};
/* A page in the order of creation, or against it. ret_next is "" on the last one. */
int boxes_list(struct core *c, const struct actor *a, const struct box_filter *f,
	       void (*each)(void *arg, const struct box *b), void *arg, char ret_next[BOXES_CURSOR_SIZE],
	       struct err *e) _must_check_;

/* All that the actor may list, in the order of creation. */
int boxes_each(struct core *c, const struct actor *a, void (*each)(void *arg, const struct box *b), void *arg,
	       struct err *e) _must_check_;

/*
 * ---- tokens.c ----
 * What opens one box and nothing else, without a key: derived from the
 * installation's secret and the box's id, so that nothing is stored and a restart
 * changes nothing. A box that is made anew has another id and so other tokens. The token
 * for models can be changed and may have an end (spec.ai_token).
 */

/* The box's id, 64 hex digits, NUL: whoever has a token need not say which box it opens. */
#define TOKENS_SIZE (20 + 64 + 1)

/* The zero value fits no token. */
enum token_kind {
	TOKEN_NONE,
	TOKEN_ENVD,    /* files and processes */
	TOKEN_TRAFFIC, /* its ports */
	TOKEN_AI,      /* models, in its name */
	TOKEN_AGENT,   /* what an agent that runs there may ask for */
	TOKEN_KINDS
};

void tokens_of(const struct core *c, const struct box *b, enum token_kind kind, char ret[TOKENS_SIZE]);
/* In time that does not depend on what was given. */
bool tokens_fit(const struct core *c, const struct box *b, enum token_kind kind,
		struct view given) _must_check_;
/* The id of the box that it says it opens; p == NULL: it is no token. Proves nothing. */
struct view tokens_box(struct view token);

/* The box that it opens, or NULL. Boxes that nobody sees are opened by none. */
const struct box *tokens_opens(struct core *c, enum token_kind kind, struct view token) _must_check_;
