/*
 * The policy of agents' JSON-RPC: what a method is allowed to do, and how requests are read and written anew.
 * Pure: no I/O, no state.
 *
 * Nothing that an agent sent is forwarded as it is. Readers of JSON disagree about duplicate keys, about the
 * case of keys and about large numbers, so a request is parsed strictly, judged, and written again from
 * what was judged. Methods are allowed by their exact names.
 */
#pragma once

#include "json.h"

#define ETHRPC_BATCH_MAX 50

/* The zero value is refused. */
enum ethrpc_class {
	ETHRPC_REFUSED,
	ETHRPC_PASS,     /* asked of a node */
	ETHRPC_CHAIN_ID, /* answered here, and so is the next */
	ETHRPC_NET_VERSION,
	ETHRPC_ACCOUNTS,
	ETHRPC_SEND,       /* a transaction: for the signer */
	ETHRPC_SIGN,       /* a message or typed data: for the signer */
	ETHRPC_FILTER_NEW, /* its result is the name of a filter, which belongs to the agent */
	ETHRPC_FILTER_USE, /* its first parameter is such a name */
	ETHRPC_LOGS,
};

/* Codes of JSON-RPC and EIP-1474. */
enum ethrpc_code {
	ETHRPC_E_PARSE = -32700,
	ETHRPC_E_INVALID = -32600,
	ETHRPC_E_METHOD = -32601,
	ETHRPC_E_PARAMS = -32602,
	ETHRPC_E_INTERNAL = -32603,
	ETHRPC_E_UNSUPPORTED = -32004,
	ETHRPC_E_LIMIT = -32005,
};

struct ethrpc_request {
	const struct json *id; /* a string, a number or null */
	struct view method;
	const struct json *params; /* an array, or NULL */
	enum ethrpc_class class;
};

enum ethrpc_class ethrpc_classify(struct view method);
/* One request. ERR_INVALID; *ret has the id as far as there is one. */
int ethrpc_read(const struct json *j, struct ethrpc_request *ret, struct err *e) _must_check_;
/* The same from its parts; params may be NULL. */
int ethrpc_make(struct view method, const struct json *params, struct ethrpc_request *ret,
		struct err *e) _must_check_;
/* What the policy says about its parameters. ERR_INVALID. */
int ethrpc_check(const struct ethrpc_request *r, struct err *e) _must_check_;
/* As a node gets it. */
void ethrpc_put(struct json_out *o, const struct ethrpc_request *r, uint64_t id);

/* What a node says about one request. Exactly one of result and error. */
struct ethrpc_result {
	const struct json *result, *error;
	int64_t code; /* of the error */
	struct view message;
};
/* The answer to n requests with the ids first … first + n - 1, in that order. A node that leaves one out,
 * answers twice or answers what nobody asked is not believed: ERR_UNAVAILABLE. */
int ethrpc_answers(struct arena *a, struct view body, uint64_t first, size_t n, bool batch,
		   struct ethrpc_result *ret, struct err *e) _must_check_;
