/*
 * The language of egress policies: what a box may reach. A policy is an ordered list
 * of rules, of which the first that matches decides, a verdict for what none matches,
 * and limits. A rule names a host, a network or a set; sets are lists of targets that
 * the configuration gives a name. Pure: no I/O, no state.
 *
 * The zero value of a verdict is none at all, and nothing is allowed by it.
 */
#pragma once

#include "json.h"

#define EGRESS_RULES_MAX  256  /* as written */
#define EGRESS_FLAT_MAX   1024 /* with all sets expanded */
#define EGRESS_LIST_MAX   16   /* ports, methods, paths of one rule */
#define EGRESS_PATH_MAX   256
#define EGRESS_HOST_MAX   253
#define EGRESS_TARGET_MAX 512
#define EGRESS_TEXT_MAX   (64u * 1024)
#define EGRESS_SETS_MAX   128

enum egress_verdict { EGRESS_NONE, EGRESS_DENY, EGRESS_ALLOW };

/* TCP is whatever it is; TLS is known by the name in its hello; HTTP is what can be read, in clear or because
 * the gate opened the TLS around it. */
enum egress_protocol { EGRESS_ANY, EGRESS_TCP, EGRESS_TLS, EGRESS_HTTP, EGRESS_PROTOCOLS };

struct egress_ports {
	uint16_t first, last;
};

/* An address and how many of its bits count. */
struct egress_net {
	uint8_t family; /* 4 or 6; 0: none */
	uint8_t prefix;
	uint8_t addr[16]; /* the first four of them for 4 */
};

/* A secret of the vault that is put into requests; exactly one of header, query and placeholder. Without a
 * secret: a header whose value is the prefix alone, and nothing to be kept secret. */
struct egress_inject {
	struct view secret, header, prefix, query;
	bool placeholder; /* {{secret.NAME}} in target, headers and body */
};

struct egress_rule {
	enum egress_verdict verdict;
	struct view set, host;      /* host: "a.b", "*.b" (what is below b), "*" (every name) */
	struct egress_net net;      /* with a host both must hold */
	struct egress_ports *ports; /* none: all */
	size_t n_ports;
	enum egress_protocol protocol;
	struct json_strlist methods;  /* none: all; of HTTP alone */
	struct json_strlist paths;    /* "/a": that and what is below it */
	struct egress_inject *inject; /* TLS to the host is looked into for these */
	size_t n_inject;
};

/* 0: what the gate allows anyhow. */
struct egress_limits {
	uint64_t connections; /* open at once */
	uint64_t connections_per_second;
	uint64_t bytes_per_second; /* both directions together */
	uint64_t bytes;            /* in all, both directions together */
};

struct egress_policy {
	enum egress_verdict otherwise; /* what no rule matches */
	struct egress_rule *rules;
	size_t n_rules;
	struct egress_limits limits;
	bool refuse_ech; /* encrypted ClientHellos are not intercepted: they have no name */
};

const char *egress_verdict_name(enum egress_verdict v);
const char *egress_protocol_name(enum egress_protocol p);

/* A policy from JSON; views point into the arena or the document. ERR_INVALID names the field.
 * `sets` is the object of sets that there are, for the names (NULL: none; egress_any_set: what was
 * judged before is not refused for a set that is gone since). */
extern const struct json egress_any_set;
int egress_read(struct arena *a, const struct json *doc, const struct json *sets, struct egress_policy *ret,
		struct err *e) _must_check_;
int egress_parse(struct arena *a, struct view text, const struct json *sets, struct egress_policy *ret,
		 struct err *e) _must_check_;
/* A copy whose memory is the arena's; -ENOMEM. */
int egress_copy(struct arena *a, const struct egress_policy *p, struct egress_policy *ret) _must_check_;
/* The whole of it in its one form: {"default", "rules", "limits"}; out->bad. */
int egress_write(const struct egress_policy *p, struct buf *out);
void egress_put(struct json_out *o, const struct egress_policy *p);
void egress_put_rule(struct json_out *o, const struct egress_rule *r);

/* "pypi", "a.b:443", "*.b", "10.0.0.0/8:5432", "[2001:db8::]/32", "https://a.b/v1". The verdict is left out.
 */
int egress_target(struct arena *a, struct view text, const struct json *sets, struct egress_rule *ret,
		  struct err *e) _must_check_;
/* The parts of a rule, checked. */
int egress_host(struct arena *a, struct view text, struct view *ret, struct err *e) _must_check_;
int egress_net(struct view text, struct egress_net *ret, struct err *e) _must_check_;
/* `inject` of a rule whose verdict and host are known, which have been filled in. */
int egress_check_inject(const struct egress_rule *r, struct err *e) _must_check_;
/* `inject` of a rule whose verdict and host are known: an array of objects, or nothing. */
int egress_read_inject(struct arena *a, const struct json *j, struct egress_rule *r,
		       struct err *e) _must_check_;
/* Whether any rule asks for a name. */
bool egress_asks_names(const struct egress_policy *p);
/* Whether any rule puts a secret into requests. */
bool egress_injects(const struct egress_policy *p);
/* Whether any rule is about what is inside of TLS: secrets, methods, paths. */
bool egress_opens(const struct egress_policy *p);
bool egress_rule_eq(const struct egress_rule *a, const struct egress_rule *b);

/* {NAME: [TARGET…]}: names and targets, and that no target is itself a set. */
int egress_check_sets(struct arena *a, const struct json *sets, struct err *e) _must_check_;
bool egress_is_set_name(struct view v);
/* The same rules with the members of the sets in place of their names. A set that is not
 * there any more has no members. ERR_TOO_LARGE past EGRESS_FLAT_MAX. */
int egress_flatten(struct arena *a, const struct egress_policy *p, const struct json *sets,
		   struct egress_policy *ret, struct err *e) _must_check_;

/* Whether the rule opens addresses that are not public: a network that lies within them. */
bool egress_rule_is_private(const struct egress_rule *r);
/* "10.0.0.0/8" */
int egress_put_net(struct buf *out, const struct egress_net *n);
