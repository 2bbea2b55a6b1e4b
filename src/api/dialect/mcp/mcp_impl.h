/*
 * What the files of this dialect share: see mcp.h.
 */
#pragma once

#include "list.h"
#include "map.h"
#include "mcp.h"
#include "stream.h"

#define MCP_SESSION_ID  32
#define MCP_RESULT_MAX  (256u * 1024 * 1024)
#define MCP_STATE_MAX   (16u * 1024) /* of a sealed state */
#define MCP_STATE_SECS  900
#define MCP_MIME_MAX    64
#define MCP_SERVER_NAME "paddock"

/* Errors of JSON-RPC and of MCP. */
enum mcp_error {
	MCP_PARSE = -32700,
	MCP_REQUEST = -32600,
	MCP_METHOD = -32601,
	MCP_PARAMS = -32602,
	MCP_INTERNAL = -32603,
	MCP_REFUSED = -32000,
	MCP_HEADER = -32020,
	MCP_CAPABILITY = -32021,
	MCP_VERSION = -32022,
};

enum mcp_version { MCP_NONE, MCP_2025_03, MCP_2025_06, MCP_2025_11, MCP_2026_07, MCP_VERSIONS };
enum mcp_cap { MCP_CAP_NONE, MCP_CAP_ROOTS = 1, MCP_CAP_SAMPLING = 2, MCP_CAP_ELICITATION = 4 };
enum mcp_level { MCP_LEVEL_DEBUG, MCP_LEVEL_INFO, MCP_LEVEL_NOTICE, MCP_LEVEL_WARNING, MCP_LEVEL_OFF = 99 };

struct mcp_call;
struct mcp_stream;

/* ---- mcp_rpc.c ---- */

enum mcp_message_kind { MCP_MESSAGE_BAD, MCP_MESSAGE_REQUEST, MCP_MESSAGE_NOTE, MCP_MESSAGE_RESPONSE };
struct mcp_message {
	enum mcp_message_kind kind;
	const struct json *id, *params, *result, *error; /* NULL: absent */
	struct view method;
};
struct mcp_message mcp_rpc_read(const struct json *j);
void mcp_rpc_put_id(struct json_out *o, const struct json *id); /* null where there is none */
enum mcp_version mcp_rpc_version(struct view text);
const char *mcp_rpc_version_name(enum mcp_version v);
unsigned mcp_rpc_caps(const struct json *capabilities);
int mcp_rpc_level(struct view name); /* negative: there is no such level */
/* The value of a header that may be "=?base64?…?=": decoded into the arena. p == NULL: malformed. */
struct view mcp_rpc_header(struct arena *a, struct view value);

/* ---- the dialect ---- */

/* A tool; what clients see of it is in tools.yaml under the same name. */
struct mcp_tool {
	const char *name;
	void (*run)(struct mcp_call *c);
	const struct json_schema *args; /* into c->own; the first field is `sandbox` where `box` says so */
	const size_t *size;             /* of what c->own points to */
	bool box;                       /* about one sandbox, so it is offered at /sandbox/NAME/mcp, too */
	const char *audit;              /* its name in the audit log, where it has entries; else NULL */
};

/* The first member of what arguments are read into. */
struct mcp_args {
	bool unused; /* a schema puts nothing at offset 0 */
	struct view sandbox;
};

/* What is served: Paddock, or the fixtures of the conformance suite. A NULL method is not there. */
struct mcp_kind {
	struct view capabilities, instructions; /* capabilities: JSON */
	const struct mcp_tool *tools;           /* ends with a NULL name */
	struct view list_all, list_box;         /* the tools as clients see them: a JSON array */
	struct view templates;                  /* of resources: a JSON array */
	void (*resources)(struct mcp_call *c), (*read)(struct mcp_call *c), (*complete)(struct mcp_call *c);
	void (*prompts)(struct mcp_call *c), (*prompt)(struct mcp_call *c), (*subscribe)(struct mcp_call *c);
};

struct mcp {
	struct core *core;
	struct loop *loop; /* set by the first request */
	const struct mcp_kind *kind;
	struct map sessions;
	struct list order;   /* sessions, the one that was used last at the end */
	struct list streams; /* that belong to no session */
	struct list outputs; /* mcp_outputs.c, the oldest first */
	struct loop_timer prune;
	uint64_t asks;
	uint32_t n_streams;
};
void *mcp_new(struct core *c, const struct mcp_kind *kind, struct err *e);
void mcp_free(void *state);
extern const struct mcp_kind mcp_kind;
void mcp_fail(struct request *r, const struct err *e, const struct http_header *extra, size_t n_extra);
extern const struct route mcp_http_routes[], mcp_access_routes[];
extern const struct dialect_tools mcp_hub;
/* Gives a message to stream->then, for whom it is. */
void mcp_hub_deliver(struct mcp_stream *s, struct request *r, struct view json);

/* ---- mcp_access.c ---- */

/* The value of WWW-Authenticate for a request without a valid key. */
void mcp_access_challenge(const struct http_exchange *x, struct buf *out);

/* ---- mcp_session.c ---- */

struct mcp_session {
	struct mcp *mcp;
	struct map_node by_id;
	struct list order;
	char id[MCP_SESSION_ID + 1];
	struct actor actor;
	char scope[SPEC_NAME_MAX + 1]; /* the sandbox's name in the path; "": all of the caller's */
	enum mcp_version version;
	unsigned caps;
	int level;
	uint64_t used_ms;
	struct list streams, asks;
	struct mcp_stream *get;
	size_t kept;        /* bytes of events */
	uint32_t n_streams; /* numbers that were given */
};
struct mcp_session *mcp_session_new(struct mcp *m, const struct actor *a, struct view scope, struct err *e);
/* The one that the request names, if it is the caller's; NULL. */
struct mcp_session *mcp_session_find(struct mcp *m, const struct request *r, struct view id);
void mcp_session_free(struct mcp_session *s);
void mcp_session_prune(struct mcp *m);

/* ---- mcp_stream.c ---- */

struct mcp_stream {
	struct mcp *mcp;
	struct mcp_session *session; /* NULL: in 2026-07-28 there is none */
	struct list link;
	struct request *r; /* whose answer it is; NULL: nobody reads it at the moment */
	struct stream sse;
	enum mcp_version version;
	uint32_t number;
	uint64_t seq; /* of the last event */
	struct list events;
	size_t kept;
	uint64_t ended_ms;
	struct list calls;
	struct arena arena; /* of the messages that it answers */
	struct buf batch;   /* answers to a batch that are ready */
	struct view
		content; /* that belongs into the one answer at this place of its JSON: mcp_stream_content */
	size_t content_at;
	bool content_is_text;
	bool begun; /* as events */
	bool is_batch, lasting, settling;
	/* Takes the place of the answer, for another dialect: mcp_hub.c. May be NULL. */
	void (*then)(struct request *r, struct view result, const struct err *e);
	struct loop_timer late; /* an answer that takes long becomes a stream, which can say that it lives */
};
/* Takes the request and its parsed body. NULL: the answer is sent. */
struct mcp_stream *mcp_stream_new(struct mcp *m, struct request *r, struct mcp_session *s,
				  enum mcp_version v);
void mcp_stream_begin(struct mcp_stream *s);
/* A message that is no answer. */
void mcp_stream_note(struct mcp_stream *s, struct view json);
/* Content of the next answer, which is escaped (text) or coded in base64 as it is sent, from a copy. Its
 * place, within an empty string of the JSON, is then to be set. False: it has to be in the JSON. */
bool mcp_stream_content(struct mcp_stream *s, struct view bytes, bool text) _must_check_;
/* The answer to one of the calls; http is its status, where it is the only message. Takes the bytes. */
void mcp_stream_answer(struct mcp_stream *s, struct buf *json, int http);
/* A call has ended: the answer ends with the last one. The stream may be gone then. */
void mcp_stream_settle(struct mcp_stream *s);
/* Ends the answer, but not the calls: what comes is kept. */
void mcp_stream_hang_up(struct mcp_stream *s);
/* From the event behind `last` ("STREAM-SEQ") on. False: there is no such stream, or not all of it. */
bool mcp_stream_resume(struct mcp_session *s, struct request *r, struct view last);
void mcp_stream_free(struct mcp_stream *s);                        /* cancels its calls */
void mcp_stream_forget(struct mcp_session *s, uint64_t before_ms); /* ended ones, with their events */

/* ---- mcp_call.c ---- */

struct mcp_call {
	struct mcp *mcp;
	struct core *core;
	struct mcp_stream *stream;
	struct list link;
	const struct json *id, *params, *args, *meta;
	struct actor actor;
	const char *scope;
	unsigned caps;
	int level;
	void (*run)(struct mcp_call *c); /* the method or tool: again, when the client's user has answered */
	const struct mcp_tool *tool;
	struct job *job;                    /* abandoned with the call */
	void (*cancel)(struct mcp_call *c); /* ends what is under way */
	void (*done)(struct mcp_call *c);   /* gives back what own holds; may be NULL */
	void *own;
	struct buf out;
	struct json_out o;
	struct loop_timer timer;
	uint64_t record;        /* in the audit log, while it is open; else 0 */
	enum err_code failed;   /* the result says so */
	struct audit_wait wait; /* of an answer that waits for its entry */
	/* mcp_input.c */
	const struct json *inputs; /* what the client answered; NULL: nothing yet */
	struct view state;         /* what mcp_input_send was given before; p == NULL: nothing */
	struct buf asks, answers;
	struct json_out asks_out, answers_out;
	unsigned n_asks, waiting;
};
void mcp_call_start(struct mcp_stream *s, const struct mcp_message *m, const struct actor *a,
		    const char *scope);
void mcp_call_free(struct mcp_call *c); /* cancels it; no answer */
struct mcp_call *mcp_call_find(struct mcp_session *s, const struct json *id);
bool mcp_call_is_modern(const struct mcp_call *c);

/* A result: opened, filled, sent. Each function that sends ends the call. */
struct json_out *mcp_call_result(struct mcp_call *c);
struct json_out *mcp_call_open(struct mcp_call *c, const char *type); /* of another type than "complete" */
void mcp_call_send(struct mcp_call *c);
void mcp_call_cacheable(struct mcp_call *c,
			bool public); /* of an open result: it changes with releases only */
void mcp_call_error(struct mcp_call *c, enum mcp_error code, int http, const char *fmt, ...) _printf_(4, 5);
void mcp_call_error_data(struct mcp_call *c, enum mcp_error code, int http, struct view data,
			 const char *message);
/* The result of a tool that failed; what went wrong is for the model to read. */
void mcp_call_fail(struct mcp_call *c, const struct err *e);
/* content: [ …, to be filled; then mcp_call_structured with the object as JSON, or mcp_call_send_content. */
struct json_out *mcp_call_content(struct mcp_call *c);
void mcp_call_text(struct mcp_call *c, struct view text);
void mcp_call_media(struct mcp_call *c, const char *type, struct view base64, const char *mime);
void mcp_call_link(struct mcp_call *c, struct view uri, struct view name, const char *mime, uint64_t size);
void mcp_call_structured(struct mcp_call *c, struct view object);
void mcp_call_send_content(struct mcp_call *c, bool failed);
/* Both of them: the object, and the same as text. */
void mcp_call_object(struct mcp_call *c, struct view object);

void mcp_call_progress(struct mcp_call *c, double progress, double total, struct view message);
bool mcp_call_wants_progress(const struct mcp_call *c);
void mcp_call_log(struct mcp_call *c, enum mcp_level level, struct view text);
/* Of a tool that has a record: this call changes nothing. */
void mcp_call_unrecorded(struct mcp_call *c);
void *mcp_call_own(struct mcp_call *c, size_t size); /* zeroed; NULL: the call has failed */
/* The call's job, or why there is none. */
void mcp_call_await(struct mcp_call *c, struct job *job, const struct err *e);

/* ---- mcp_input.c ---- */

/* The answer under this key; NULL: there is none yet. */
const struct json *mcp_input(const struct mcp_call *c, const char *key);
/* Asks for it, where the client has declared that it can answer. */
bool mcp_input_ask(struct mcp_call *c, const char *key, const char *method, struct view params);
/* Sends what was asked for. `run` is called again with the answers and this state, which nobody but us can
 * read or make, for this caller, this call and a quarter of an hour. p == NULL: no state. */
void mcp_input_send(struct mcp_call *c, struct view state);
/* What the request says of answers and state. False: the call has ended with an error. */
bool mcp_input_read(struct mcp_call *c);
/* A client's answer to a request of ours. */
void mcp_input_answer(struct mcp_session *s, const struct mcp_message *m);
void mcp_input_forget(struct mcp_call *c);

/* ---- mcp_seal.c ---- */

/* `bound` is what the seal is for; it must be given again to open it. */
int mcp_seal(const uint8_t key[32], struct view bound, int64_t expires_s, struct view text,
	     struct buf *out) _must_check_;
int mcp_seal_open(const uint8_t key[32], struct view bound, int64_t now_s, struct view sealed,
		  struct buf *out) _must_check_; /* -EBADMSG, -ETIME */

/* ---- mcp_methods.c ---- */

void mcp_methods_call(struct mcp_call *c, struct view method);
void mcp_methods_initialize(struct mcp_stream *s, const struct mcp_message *m);
const struct mcp_tool *mcp_methods_tool(const struct mcp *m, struct view name);
/* Runs a tool for this call: reads its arguments first. */
void mcp_methods_run(struct mcp_call *c, const struct mcp_tool *t);
/* To every open stream that wants to know it: "tools", "prompts" or "resources". */
void mcp_methods_changed(struct mcp *m, const char *what);
