/*
 * The configuration: paddock.yaml, then PADDOCK_* variables, then flags; read
 * once into a const struct, validated as a whole. The command line does the
 * reading (config_yaml.h, libyaml); the daemons get the effective configuration
 * as JSON in a sealed memfd and read it with config_from_json.
 */
#pragma once

#include <sys/socket.h>

#include "arena.h"
#include "box_limits.h"
#include "buf.h"
#include "err.h"
#include "json.h"

/* Host ids of one box lie this far from those of the next: its 65536 and a gap. A round
 * stride would put the same user of all boxes into one bucket of the kernel's table. */
#define CONFIG_NOTE       "/run/paddock.json" /* of the daemon of this machine: see src/cli/local.h */
#define CONFIG_UID_STRIDE 65664u
#define CONFIG_UID_LEAST  100000u /* the machine's own users and services lie below */

/* For all boxes that run. */
struct config_budget {
	double cpu;         /* sum of their limits; 0 = any */
	uint64_t memory_mb; /* sum of their limits; 0 = 90 % of the machine by what they use */
};

/* Boxes that are started ahead. */
struct config_pool {
	struct view image;
	uint64_t warm;
};
#define CONFIG_POOL_MOST  1000
#define CONFIG_PARTS_MOST 256

/* A listener besides `listen`, which has one dialect only. */
struct config_listener {
	struct view address, dialect;
	struct view sandbox; /* that it is for, where the dialect is about one; may be empty */
	bool anonymous;      /* who shows no key is a user of the tenant "default"; on loopback only */
};
#define CONFIG_LISTENERS_MOST 12

/* A provider of models. */
struct config_provider {
	struct view name;                      /* "openai", "anthropic" */
	struct view url;                       /* https://host[:port][/path] */
	struct view secret;                    /* whose value is the key */
	struct json_strlist endpoints, models; /* patterns; none: what can be metered, all */
	/* the URL's parts */
	struct view host, authority, path;
	uint16_t port;
	bool tls;
};

/* An http URL and its parts, which point into it: config_agents.c. */
struct config_url {
	struct view text, host, authority, target;
	uint16_t port;
	bool tls;
};
/* ERR_INVALID goes on after the name of what is read: "must begin with …". */
int config_url(struct view url, struct config_url *ret, struct err *e) _must_check_;

/* A chain of agents. */
struct config_chain {
	struct view id; /* "eip155:1" */
	struct view name;
	struct view symbol;     /* of its native asset, for people: "ETH"; p == NULL: not known */
	struct view explorer;   /* https://…, for people: /tx/HASH is behind it; p == NULL: none */
	struct config_url *rpc; /* the first that answers is asked */
	size_t n_rpc;
	uint32_t confirmations; /* until a transaction counts as confirmed */
	uint32_t poll_ms;       /* how often transactions that are under way are looked at */
	uint32_t stuck_blocks;  /* after so many without it, a transaction is called stuck */
	uint32_t lost_s;        /* what a wallet elsewhere sent, and no node knows for so long, is dropped */
	uint64_t max_fee_gwei;  /* the most that is offered for gas; 0: no ceiling but the wallet's limits */
};
/* What holds for a chain that says nothing about itself, or that only a manifest has a node for. */
void config_chain_default(struct view id, struct config_chain *ret);
#define CONFIG_CHAINS_MOST 64
/* A catalogue of agents. The command line reads it, and believes what this key has signed. */
struct config_catalogue {
	struct view name, url, path; /* one of the two */
	struct view key;             /* Ed25519's public key in hexadecimal digits */
};
#define CONFIG_CATALOGUES_MOST 16
#define CONFIG_RELAY           "wss://relay.walletconnect.org"
/* The number behind "eip155:"; p == NULL: it is no such chain. */
struct view config_chain_number(struct view id);

/* What boxes may use of models. 0: no limit; money in dollars. */
struct config_ai_limits {
	uint64_t requests_per_minute, tokens_per_minute, parallel;
	double day, week, month;
	double warn;     /* the part of a budget at which to warn; 0: never */
	bool log_bodies; /* keep the text of calls; of `max`: it may be asked for */
};

/* What one tenant may hold whose quota does not say it; 0 = no limit. */
struct config_tenant {
	uint64_t processes, helpers, workspaces, snapshots, templates, webhooks, secrets, secrets_kb;
};

/* A directory of the machine that may be mounted into boxes, with all below it. */
struct config_mount {
	struct view path;            /* absolute, without "." and ".." */
	struct json_strlist tenants; /* whose users may, besides administrators */
	bool writable;
};

/* A key that was made elsewhere, known by the SHA-256 of its text. */
struct config_key {
	struct view sha256; /* 64 hex digits */
	struct view role;   /* "user", "admin" */
};
#define CONFIG_KEYS_MOST 16

struct config {
	struct view listen;      /* "127.0.0.1:7080", "[::1]:7080", port 0 = any */
	struct view data_dir;    /* absolute */
	struct view admin_group; /* of this machine; its members may read admin.key. "" = root alone */
	struct view run_dir;     /* absolute */
	struct view log_level;   /* error, warn, info, debug */
	struct {
		struct view cert, key; /* PEM files; both or none */
	} tls;
	struct {
		struct view image;             /* "machine" */
		struct view user;              /* "user" */
		struct view workdir;           /* "/workspace" */
		uint64_t ttl_seconds;          /* 0 = no end */
		struct box_limits_wish limits; /* disk_mb: 0 = none, without one the keeper chooses */
		bool sudo;                     /* users of boxes become root by sudo; false: of no box */
		struct view timezone; /* of boxes that are made from an image; "" = the image's own */
	} defaults;
	struct {
		struct box_limits_wish limits; /* what one box may ask for at most; disk_mb 0 = no ceiling */
		uint64_t boxes;                /* in all */
		uint64_t ttl_seconds;          /* 0 = none */
		uint64_t build_cache_mb; /* of a tenant: states of builds between their steps; 0 = none */
		uint64_t thrash_seconds; /* at the memory limit, before the largest program is killed; 0 = for
					    ever */
		uint64_t exec_timeout_ms;   /* default and maximum of one exec */
		uint64_t exec_output_bytes; /* of stdout and of stderr, kept by one exec */
		uint64_t body_bytes;        /* of a JSON body */
		uint64_t connections;       /* of clients of the API */
		struct config_budget budget;
		struct config_tenant tenant;
	} max;
	struct {
		uint64_t api;    /* uid and gid of paddock-api */
		uint64_t hook;   /* of paddock-hook */
		uint64_t gate;   /* of paddock-gate */
		uint64_t vault;  /* of paddock-vault */
		uint64_t ai;     /* of paddock-ai */
		uint64_t gauge;  /* of paddock-gauge */
		uint64_t signer; /* of paddock-signer */
		uint64_t base;   /* first host uid of the first box */
		uint64_t slots;  /* ranges of CONFIG_UID_STRIDE ids, one per running box */
	} uids;
	struct {
		struct view backend; /* "auto", "btrfs", "copy": see src/keeper/disk.h */
		uint64_t size_mb;    /* of the loop file, 0 = as fits, and it grows */
	} data;
	struct {
		struct view
			parent; /* cgroup below which boxes live, relative to the daemon's own; "paddock" */
	} cgroup;
	struct {
		struct view
			refuse; /* addresses that webhooks may not have: "none", "link-local", "private" */
		struct view ca_file; /* PEM, of the authorities for https; empty: the system's */
	} webhooks;
	struct {
		struct view dns;            /* name server that the gate asks: "1.2.3.4", "[::1]:5353"; "" =
					       /etc/resolv.conf */
		struct view upstream_proxy; /* HTTP proxy through which the gate dials,
					       "http://10.0.0.1:3128"; "" = none */
		struct view ca_file;        /* authorities of servers, besides the system's; "" = none */
		bool proxy_variables;       /* HTTP_PROXY and its kin are set in boxes; nothing needs them */
	} gate;
	struct {
		struct view domain;      /* PORT-ID.domain is a port of a box; empty: no host names. On
					    loopback without TLS "localhost" unless it is given */
		struct view cert, key;   /* PEM files for *.domain; both or none: then tls serves it */
		uint64_t answer_seconds; /* a server in a box begins its answer within this */
	} ports;
	struct {
		uint64_t session_seconds; /* without a request, until one must sign in again */
	} dashboard;
	struct {
		const struct json *policy; /* of boxes that have no other; NULL: nothing is allowed */
		const struct json *images; /* {IMAGE: POLICY} */
		const struct json *sets;   /* {NAME: [TARGET…]}, with those that were found */
		const struct json
			*sources; /* {NAME: [SOURCE…]} of those that were found: see config_sets.h */
		const struct json *refuse; /* [TARGET…] that no policy allows */
		struct view non_public;    /* who may open addresses that are not public: "admin", "anyone" */
		struct view
			capture; /* how connections come to the gate: "auto", or as netns_capture_name says */
		bool detect; /* the sets of package managers, from the configuration of machine and images */
	} egress;
	struct {
		const struct json
			*providers; /* {NAME: {url, secret, endpoints, models}}; NULL: there is no gateway */
		const struct json *prices; /* before those of etc/prices.json */
		bool unpriced;             /* models without a price are free, instead of refused */
		struct view ca_file;       /* PEM, of the authorities for https; empty: the system's */
		struct config_ai_limits box, tenant; /* of those that were given none */
		struct config_ai_limits max;         /* that a box may be given */
	} ai;
	struct {
		const struct json *require, *without; /* [FEATURE…], see feature.h */
		uint32_t required, left_out;          /* the same as FEATURE_BITs */
	} posture;
	struct {
		const struct json *allow; /* [{path, tenants, writable}]; NULL: nothing */
	} mounts;
	struct config_mount *mount_list; /* the same, read */
	size_t n_mounts;

	const struct json *listeners;         /* [{address, dialect}], as it was given */
	struct config_listener *listeners_of; /* the same, read */
	size_t n_listeners;
	const struct json *keys;       /* [{sha256, role}], as it was given */
	struct config_key *keys_given; /* the same, read */
	size_t n_keys;
	struct {
		uint64_t session_ttl_seconds; /* of a session that names none */
		const struct json *images;    /* [NAME…] that sessions may have; NULL: all */
		bool workspaces, readonly_root;
	} sandkasten;
	struct {
		uint64_t session_timeout; /* seconds after the last use */
	} agentbox;
	struct {
		struct view node, python;  /* images of agents, by their runtime; empty: the default one */
		const struct json *chains; /* {CHAIN: {name, rpc: [URL…]}}; NULL: none */
		const struct json *rpcs;   /* [URL…] that manifests may name for chains; NULL: none */
		struct {
			bool unused;            /* the schema puts nothing at offset 0 */
			struct view relay;      /* wss://…, or ws:// on this machine */
			struct view project_id; /* empty: wallets elsewhere cannot be connected */
			struct config_url at;   /* `relay`, read */
		} walletconnect;
		struct config_chain *chain_list; /* `chains`, read */
		size_t n_chains;
		const struct json *catalogues; /* [{name, url or path, key}…]; NULL: none */
		struct config_catalogue *catalogue_list;
		size_t n_catalogues;
	} agents;
	struct view notes; /* lines about what a foreign file says and this does not honour; of the command
			      line */
	const struct json *origins;        /* of the values: see config_origins.h; NULL: not told */
	struct config_provider *providers; /* ai.providers, read */
	size_t n_providers;
	uint64_t parts;            /* network namespaces and storages that the keeper has ready */
	const struct json *pool;   /* {IMAGE: {warm: N}}, as it was given */
	struct config_pool *pools; /* the same, read */
	size_t n_pools;
};

/* Reads a JSON document (whatever it was parsed from) over the defaults. Views
 * point into the document's arena. with_lines: errors say "line N: ". */
int config_from_doc(struct arena *a, const struct json *doc, bool with_lines, struct config *ret,
		    struct err *e) _must_check_;
int config_from_json(struct arena *a, struct view text, struct config *ret, struct err *e) _must_check_;
/* Reads agents.chains and judges the URLs, for config.c. ERR_INVALID names the setting. */
int config_agents_read(struct config *c, struct arena *a, bool with_lines, struct err *e) _must_check_;
/* Whether a path is absolute and has no empty component, "." or "..". */
bool config_is_path(struct view path);
bool config_is_mount_point(struct view path); /* a path, and not in /proc, /sys, /dev or /run */
/* The entry of mounts.allow that the directory is or is below, the longest first; NULL: it is in none. */
const struct config_mount *config_mount(const struct config *c, struct view path);
/* Applies one "PADDOCK_…" variable (without prefix, e.g. "LISTEN", "DEFAULTS_LIMITS_CPU")
 * or a flag onto a document, so that everything is validated together. */
int config_override(struct arena *a, struct json *doc, const char *variable, struct view value,
		    struct err *e) _must_check_;
/* The address of `listen`; -EINVAL. */
int config_listen(struct view listen, struct sockaddr_storage *ret, socklen_t *ret_len) _must_check_;
/* The effective configuration as JSON. */
int config_to_json(const struct config *c, struct buf *out) _must_check_;
