/*
 * What is wished of mounted secrets: `secrets: [{name, file | env, version}]` of a box or
 * of one command. Names only; values are never here. Pure.
 */
#pragma once

#include "json.h"

#define SPEC_SECRETS_MAX 64

struct spec_secret {
	struct view name;
	struct view file; /* below /run/secrets; empty: none */
	struct view env;  /* a variable; empty: none */
	uint32_t version; /* 0: the newest */
};

struct spec_secrets {
	struct spec_secret *items;
	size_t n;
};

/* An array of such objects; NULL and null are none. ERR_INVALID names the field. */
int spec_secrets_read(struct arena *a, const struct json *j, bool files, struct spec_secrets *ret,
		      struct err *e) _must_check_;
int spec_secrets_copy(struct arena *a, const struct spec_secrets *from,
		      struct spec_secrets *to) _must_check_; /* -ENOMEM */
void spec_secrets_put(struct json_out *o, const struct spec_secrets *s);
bool spec_secrets_is_name(struct view v); /* [A-Za-z_][A-Za-z0-9_.-]{0,63} */
