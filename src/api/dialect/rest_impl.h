/*
 * What the files of the REST dialect share. A request lives from its head to its
 * answer (rest_reply, rest_fail, rest_done) or its abort; a handler must not
 * touch it after any of these.
 */
#pragma once

#include "core.h"
#include "http.h"
#include "job.h"
#include "json.h"
#include "list.h"
#include "who.h"

#define REST_PARAMS     2
#define REST_QUERY_MAX  64
#define REST_ANSWER_MAX (1u << 30)

struct rest {
	struct core *core;
	const struct http_server *server;
	int statm;
	struct list requests;
	void (*on_idle)(void *arg);
	void *idle_arg;
};

struct req;

/* The zero value asks for a key. SIGNED: or for a signature in the query, which the handler checks. */
enum rest_auth { REST_KEY, REST_OPEN, REST_SIGNED };
enum rest_body { REST_NONE, REST_JSON, REST_STREAM }; /* STREAM: the handler takes the pieces */

struct route {
	const char *method, *pattern; /* {x} is one segment; as the last one {path} is all that follows */
	void (*handle)(struct req *r);
	enum rest_auth auth;
	int (*permit)(struct req *r,
		      struct err *e); /* of REST_OPEN: asked for something else before anything is read */
	enum rest_body body;
	bool secret;       /* the body is wiped wherever it was */
	const char *query; /* the names that are allowed, between spaces; "x.*" allows a prefix, "x+" more
			      than one */
};

struct rest_pair {
	struct view name, value;
};

struct req {
	struct rest *rest;
	struct core *core;
	struct http_exchange *x;
	const struct route *route;
	struct list link;
	struct actor actor;
	struct view params[REST_PARAMS];
	struct rest_pair *query;
	size_t n_query;
	struct buf body;                 /* of REST_JSON */
	struct arena arena;              /* of the parsed body */
	struct job *job;                 /* what is under way; abandoned when the client goes */
	void (*on_gone)(struct req *r);  /* the client went away: cancel the rest */
	void (*on_drain)(struct req *r); /* the daemon goes down: an answer without an end ends itself */
	void *own;                       /* the handler's; freed with the request */
	struct buf out;                  /* the answer that rest_json writes */
	struct json_out json;
};

/* Every table of routes; each ends with a NULL method. */
extern const struct route rest_boxes_routes[], rest_life_routes[], rest_snapshots_routes[],
	rest_workspaces_routes[], rest_exec_routes[], rest_procs_routes[], rest_procs_io_routes[],
	rest_shells_routes[], rest_contexts_routes[], rest_terminal_routes[], rest_files_routes[],
	rest_fs_routes[], rest_search_routes[], rest_replace_routes[], rest_watch_routes[],
	rest_form_routes[], rest_admin_routes[], rest_health_routes[], rest_events_routes[],
	rest_webhooks_routes[], rest_secrets_routes[], rest_tenants_routes[], rest_stats_routes[],
	rest_ports_routes[], rest_tunnel_routes[], rest_egress_routes[], rest_links_routes[],
	rest_ai_routes[], rest_usage_routes[];

/* The key in Authorization or X-API-Key. */
int rest_authenticate(struct core *c, const struct http_exchange *x, struct actor *ret,
		      struct err *e) _must_check_;
/* Before there is a request, or when it cannot be one. */
void rest_fail_exchange(struct http_exchange *x, const struct err *e, const struct http_header *extra,
			size_t n_extra);
void rest_fail(struct req *r, const struct err *e);
void rest_fail_with(struct req *r, const struct err *e, const struct http_header *extra);
void rest_reply(struct req *r, int status, struct buf *json); /* takes the buffer's bytes */
void rest_reply_with(struct req *r, int status, struct buf *json, const struct http_header *extra,
		     size_t n_extra);
void rest_no_content(struct req *r);
/* The job that will answer, or the reason that there is none. */
void rest_await(struct req *r, struct job *job, const struct err *e);
/* What r->job was has ended: whether well; e is sent. */
bool rest_ended(struct req *r, const struct err *e);
/* The end of a job without a result: 204, or its error. */
void rest_removed(void *arg, const void *result, const struct err *e);
/* An answer in JSON: begun with one of these, written, and sent by rest_send. */
struct json_out *rest_json(struct req *r);
struct json_out *rest_json_list(struct req *r, const char *key); /* {"key": [ … ]}, sent by rest_send_list */
/* The same, with the answer begun; NULL: by e, which is sent. */
struct json_out *rest_result(struct req *r, const struct err *e);
struct json_out *rest_result_list(struct req *r, const struct err *e, const char *key);
void rest_send(struct req *r, int status);
void rest_send_list(struct req *r);
/* Whether a handler has not answered yet; r may be gone. */
bool rest_goes_on(struct rest *rest, const struct req *r);
/* After http_end or http_break. */
void rest_done(struct req *r);
/* The body as it is; an empty one is refused. */
int rest_read_doc(struct req *r, struct json **ret, struct err *e) _must_check_;
/* And against a schema. On failure the answer is sent. */
int rest_read(struct req *r, const struct json_schema *s, void *out) _must_check_;
/* A query parameter's value; p == NULL: absent. */
struct view rest_query(const struct req *r, const char *name);
/* "1" and "true", "0", "false" and absence. On failure the answer is sent. */
int rest_query_flag(struct req *r, const char *name, bool *ret) _must_check_;
/* A handler's own memory, zeroed; on failure the answer is sent. */
void *rest_own(struct req *r, size_t size);
/* key: time in RFC 3339, or null for 0 */
void rest_put_time(struct json_out *o, const char *key, int64_t ms);
