/*
 * A conversation with the daemon's REST API: where it is, with which key, and
 * calls that take and give JSON. Errors of the daemon become struct err.
 */
#pragma once

#include "client.h"
#include "json.h"
#include "opts.h"

#define SESSION_URL     "http://127.0.0.1:7080"
#define SESSION_CALL_MS 60000

struct session_flags {
	const char *url;
	const char *key_file;
	const char *ca;      /* PEM file of the authorities that are trusted with https:// */
	const char *context; /* a name of contexts.h */
};

struct session {
	struct client client;
	struct arena *arena;
	char key[256];
	const char *key_source;   /* where the key was found, for messages */
	char ref[64], ref_id[64]; /* the beginning of an id that the user gave, and the id: see ref.h */
};

/* A session that holds nothing, for session_done. */
#define SESSION_INIT ((struct session){ .client = { .fd = -1, .cancel_fd = -1 } })

/* The options of struct session_flags. */
enum { SESSION_OPTS = 4 };
extern const struct opt session_opts[SESSION_OPTS];

/* The address that somebody has named: --url, --context, PADDOCK_URL or a context; NULL: nobody has. */
int session_named(const struct session_flags *f, struct arena *a, const char **ret,
		  struct err *e) _must_check_;
/* Finds the address only: for what needs no key. */
int session_find(struct session *s, const struct session_flags *f, struct arena *a,
		 struct err *e) _must_check_;
/* Finds address and key; connects with the first call. SIGPIPE is ignored from here on. */
int session_open(struct session *s, const struct session_flags *f, struct arena *a,
		 struct err *e) _must_check_;
/* The same with this key, wherever the address came from. */
int session_open_with(struct session *s, const struct session_flags *f, struct arena *a, struct view key,
		      struct err *e) _must_check_;
void session_done(struct session *s);

struct session_call {
	const char *method;
	struct view path;
	struct view body;    /* JSON; p == NULL: none */
	uint64_t timeout_ms; /* 0: no limit */
};

/* *ret (may be NULL) is the answer's document, or NULL for an empty one. */
int session_call(struct session *s, const struct session_call *call, struct json **ret,
		 struct err *e) _must_check_;
/* For answers that are not JSON: sends; turns an answer above 299 into an error; the body is the caller's to
 * read. */
int session_send(struct session *s, const struct client_request *rq, struct response *ret,
		 struct err *e) _must_check_;
/* Opens a WebSocket on a connection of its own: then client_push and client_pull, or the fd itself. */
int session_upgrade(struct session *s, struct view path, struct err *e) _must_check_;
/* GET and DELETE of one thing: prefix, then name percent-encoded. */
int session_get(struct session *s, const char *prefix, const char *name, struct json **ret,
		struct err *e) _must_check_;
int session_delete(struct session *s, const char *prefix, const char *name, struct err *e) _must_check_;

/* Appends one path segment, '/' encoded too; an empty or dot segment is refused. */
int session_segment(struct buf *path, const char *segment, struct err *e) _must_check_;
/* The text of a member, or "" when it is absent or of another type. */
struct view session_text(const struct json *object, const char *key);
