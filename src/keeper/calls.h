/*
 * The calls that paddock-api may make to the keeper: a table, with one message of api/wire.proto each.
 * The keeper trusts nothing that the api sends: it checks ids, names and digests here, and limits
 * against its own.
 */
#pragma once

#include "keeper.h"

extern const struct link_ops calls_ops;

/* One call, as the function that carries it out sees it. */
struct keeper_call {
	struct keeper *k;
	uint16_t type;
	uint32_t stream;
	struct arena arena;
};

void calls_reply(struct keeper_call *c, const struct pb_msg *m, const void *msg);
void calls_fail(struct keeper_call *c, const struct err *e);
/* Starts the box and answers. */
int calls_start_box(struct keeper_call *c, const struct spec *s, struct view image,
		    struct err *e) _must_check_;
struct keeper_box *calls_find_box(struct keeper_call *c, struct view id, struct err *e);

void calls_storage(struct keeper *k, const char *wrong, const struct disk_room *room); /* to the api */
void calls_box_exited(struct keeper *k, const struct keeper_box *b, uint32_t code, uint32_t signo, bool oom);
