/*
 * The policy of one box: rules in order; the first matching rule decides, and without a match nothing
 * is allowed. Pure: no I/O, no clock.
 *
 * Parts of a connection may not be known yet (its address before the name is resolved, its protocol
 * before the first bytes). policy_may tells whether any rule could still allow it; policy_decide
 * decides when everything is known.
 */
#pragma once

#include "addr.h"
#include "arena.h"
#include "err.h"

struct wire_gate_policy;

enum policy_proto { POLICY_TCP = 1, POLICY_TLS, POLICY_HTTP };

/* A secret that is put into requests: see GateInject. Exactly one of header, query and placeholder. */
#define POLICY_INJECTS 16
struct policy_inject {
	char secret[65], header[65], prefix[513], query[65]; /* no secret: the prefix is the value */
	bool placeholder;
};

struct policy_rule {
	char id[64];
	bool allow;
	uint8_t protocol;  /* 0 = any */
	bool looks_inside; /* has methods or paths */
	struct view *domains, *methods, *paths;
	size_t n_domains, n_methods, n_paths;
	struct addr_net *cidrs;
	size_t n_cidrs;
	struct {
		uint16_t first, last;
	} * ports;
	size_t n_ports;
	struct policy_inject *inject;
	size_t n_inject;
};

struct policy {
	struct arena *arena;
	uint64_t version;
	struct policy_rule *rules;
	size_t n;
	uint32_t max_flows, connects_per_second;
	uint64_t bytes_per_second, max_bytes;
	struct view token_key;
	bool refuse_ech; /* encrypted ClientHellos are not looked into: they count as without a name */
};

/* Copies out of the message; ERR_INVALID for anything that is not understood. */
int policy_new(const struct wire_gate_policy *m, struct policy **ret, struct err *e) _must_check_;
void policy_free(struct policy *p);

struct policy_facts {
	struct view name;         /* lower case, without the last dot; empty: none */
	const struct addr *addr;  /* NULL: not known yet */
	bool own;                 /* the address is this machine's */
	uint16_t port;            /* 0: not known yet (DNS) */
	enum policy_proto proto;  /* 0: not known yet */
	struct view method, path; /* of POLICY_HTTP */
	bool opened;              /* POLICY_HTTP: within TLS to this name */
};

enum policy_answer {
	POLICY_DENY, /* by no rule */
	POLICY_DENY_RULE,
	POLICY_DENY_ADDRESS, /* a rule would allow it, were the address public or named */
	POLICY_ALLOW,
};

/* Everything is known (but for the method and path of a TCP or TLS connection). */
enum policy_answer policy_decide(const struct policy *p, const struct policy_facts *f,
				 const struct policy_rule **ret_rule);
/* Whether TLS to this name is looked into: a rule for it puts secrets in, or the first that decides asks for
 * methods or paths. */
bool policy_intercepts(const struct policy *p, const struct policy_facts *f);
/* Whether TLS with an encrypted ClientHello, of which this name can be read, is to be looked into. If not it
 * has no name: the rules ask for none, whatever it is for, or the policy does not wish it. */
bool policy_opens_ech(const struct policy *p, const struct policy_facts *f);
/* Whether it could still be allowed, whatever is not known yet. While only a name is known,
 * rules that only name addresses do not count: they do not open DNS. */
bool policy_may(const struct policy *p, const struct policy_facts *f);
/*
 * For a connection whose bytes have not been seen: true when the rules decide without
 * them. A rule that asks for TLS, HTTP or, with any protocol, for a name makes that false.
 */
bool policy_opaque(const struct policy *p, const struct policy_facts *f, enum policy_answer *ret,
		   const struct policy_rule **ret_rule);

/* A host name that may be asked for: letters, digits, '-', '_' and dots, no number as its
 * last label (which some read as an address). Copied in lower case without the last dot. */
int policy_name(struct view name, char dst[256]) _must_check_;
/* A path that a prefix can be compared with: no dot segments, no escapes of '/', '.', '\\', '%' and NUL. */
bool policy_path_plain(struct view path);
