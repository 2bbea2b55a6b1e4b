/*
 * A catalogue of agents: a directory, here or on a web server, with archives of agents and one signed index.
 *
 * "index.signed" is a line with the signature, and JSON behind it:
 *
 *	paddock-catalogue-1 <128 hexadecimal digits, Ed25519 over "paddock-catalogue-1\n" and the JSON>
 *	{"serial": 7, "created": MS, "expires": MS, "agents": [{"name", "version", "archive", "size",
 *	 "sha256", "manifest"}…]}
 *
 * Nothing of the JSON is read before the signature fits. The serial grows with each index, and this machine
 * remembers the last one of each key: an older index, and another one of the same number, are refused. So is
 * one that has expired. An archive is a plain name beside the index; its size and its hash are
 * checked before anything of it is unpacked.
 */
#pragma once

#include "arena.h"
#include "buf.h"
#include "err.h"
#include "json.h"
#include "sha256.h"

#define CATALOGUE_INDEX       "index.signed"
#define CATALOGUE_INDEX_MAX   (4u << 20)
#define CATALOGUE_AGENTS_MAX  2000
#define CATALOGUE_ARCHIVE_MAX (256u << 20)
#define CATALOGUE_KEY         32
#define CATALOGUE_SIGNATURE   64

struct catalogue_agent {
	struct view name, version, archive;
	const struct json *manifest;
	uint64_t size;
	uint8_t sha256[SHA256_SIZE];
};

struct catalogue {
	uint64_t serial;
	uint64_t created_ms, expires_ms;
	struct catalogue_agent *agents;
	size_t n;
	uint8_t digest[SHA256_SIZE]; /* of the signed text */
};

/* ---- catalogue.c: the index. Pure ---- */

/* Checks the signature and everything else that the index alone can tell. */
int catalogue_read(struct arena *a, struct view text, const uint8_t key[CATALOGUE_KEY], int64_t now_ms,
		   struct catalogue *ret, struct err *e) _must_check_;
/* The same of the JSON behind the signature. */
int catalogue_parse(struct arena *a, struct view json, int64_t now_ms, struct catalogue *ret,
		    struct err *e) _must_check_;
/* The JSON of an index. */
int catalogue_put(struct buf *out, const struct catalogue *c) _must_check_;
/* An entry. version.p == NULL: the newest that is no preview. NULL: there is none. */
const struct catalogue_agent *catalogue_find(const struct catalogue *c, struct view name,
					     struct view version);
/* "My Agent" is my-agent; false: there are no letters in it. */
bool catalogue_name(struct view from, char ret[64]);
bool catalogue_is_name(struct view v);
bool catalogue_is_version(struct view v);
int catalogue_compare(struct view a, struct view b);          /* of versions: <0, 0, >0 */
bool catalogue_hex(struct view text, uint8_t *ret, size_t n); /* exactly n bytes, lower case */
void catalogue_put_hex(struct buf *out, const uint8_t *p, size_t n);

/* ---- catalogue_key.c: signatures ---- */

bool catalogue_verify(const uint8_t key[CATALOGUE_KEY], struct view text,
		      const uint8_t signature[CATALOGUE_SIGNATURE]) _must_check_;
/* With the private key of a PEM file that is its owner's alone. */
int catalogue_sign(const char *key_file, struct view text, uint8_t ret[CATALOGUE_SIGNATURE],
		   uint8_t ret_key[CATALOGUE_KEY], struct err *e) _must_check_;
/* A new key, in a new file. */
int catalogue_key_new(const char *key_file, uint8_t ret_key[CATALOGUE_KEY], struct err *e) _must_check_;

/* ---- catalogue_place.c: where one is ---- */

struct catalogue_place {
	struct view name, where; /* a directory, or https://HOST/PATH */
	uint8_t key[CATALOGUE_KEY];
};
/* Fetches, checks, and compares with what was seen before. */
int catalogue_open(struct arena *a, const struct catalogue_place *p, struct catalogue *ret,
		   struct err *e) _must_check_;
/* *ret_fd: a copy that nobody can change, whose size and hash are right. */
int catalogue_fetch(const struct catalogue_place *p, const struct catalogue_agent *a, int *ret_fd,
		    struct err *e) _must_check_;
