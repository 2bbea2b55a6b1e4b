/*
 * assegai.json: what an agent is and what it asks for. Pure: no I/O, no state.
 *
 * Everything in a manifest is a request. The reader refuses, by its path, every field that it does not
 * know and every value that it could read in two ways, because a person consents to what the daemon shows
 * and not to what the file contains.
 */
#pragma once

#include "err.h"
#include "json.h"

#define MANIFEST_BYTES     (64u * 1024)
#define MANIFEST_NAME_MAX  64
#define MANIFEST_LIST_MAX  32 /* chains, hosts */
#define MANIFEST_CONTRACTS 256
#define MANIFEST_URL_MAX   512

enum manifest_runtime { MANIFEST_NO_RUNTIME, MANIFEST_NODE, MANIFEST_PYTHON };

/* Decimal text in the chain's native unit; empty: not given. */
struct manifest_limits {
	bool unused; /* the schema puts nothing at offset 0 */
	struct view per_transaction, daily, weekly, monthly;
};

struct manifest {
	bool unused;
	struct view name, version, description, author;
	struct view runtime_name, entrypoint;
	enum manifest_runtime runtime;
	struct {
		struct json_strlist chains; /* "eip155:1" */
		struct json_strmap rpcs;    /* chain: URL */
		struct json_strlist apis;   /* "openai", "anthropic" */
		struct json_strlist contracts;
		struct json_strlist hosts; /* our own: names that it may reach through the gate, "a.b:443" */
	} permissions;
	struct {
		struct view memory, cpu;
		uint64_t memory_mb; /* 0: the default */
		uint32_t cpu_milli; /* 0: the default */
	} resources;
	struct manifest_limits limits;
};

/* A document; views point into the arena or the document. ERR_INVALID names the field. */
int manifest_read(struct arena *a, const struct json *doc, struct manifest *ret, struct err *e) _must_check_;
/* As read: every field, in one order. */
void manifest_put(struct json_out *o, const struct manifest *m);

bool manifest_has_chain(const struct manifest *m, struct view chain);
bool manifest_has_api(const struct manifest *m, struct view api);
/* Whether a call of this contract is among what was consented to; with no list, any is. */
bool manifest_allows_contract(const struct manifest *m, struct view address);
bool manifest_is_address(struct view v); /* 0x and 40 hexadecimal digits */
