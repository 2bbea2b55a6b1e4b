/*
 * What the files of the Agent-Sandbox dialect share.
 */
#pragma once

#include "answer.h"
#include "box.h"
#include "dialect.h"

#define AS_PORT 8080 /* of a server in a sandbox that the path does not name */

extern const struct route as_boxes_routes[], as_observe_routes[], as_terminal_routes[], as_files_routes[],
	as_proxy_routes[];

/* {"code":"0","data": … }: the value is written between these. */
struct json_out *as_data(struct request *r);
void as_send(struct request *r);
/* A sentence as the data. */
void as_say(struct request *r, const char *fmt, ...) _printf_(2, 3);
/* Its box, by the path's name; NULL: the answer is sent. */
struct box *as_box(struct request *r, int act);
/* The name that it is called by: its own, or its id. */
struct view as_name(const struct box *b);
/* The key that the client showed, wherever it may stand. p == NULL: none. */
struct view as_token(const struct http_exchange *x);
