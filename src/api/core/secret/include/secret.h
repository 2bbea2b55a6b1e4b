/*
 * Secrets of a tenant or of one box, as clients use them: set, list by name, remove.
 */
#pragma once

#include "job.h"
#include "spec.h"
#include "who.h"

struct box;
struct core;

/*
 * ---- secrets.c ----
 * Secrets as clients see them: set, listed by name, removed; of a tenant or of one box.
 * A value goes through here to the vault and never comes back to a client; what is
 * mounted (spec_secrets.h) is read from the vault and goes on to the box.
 */

#define SECRETS_VALUE (64u * 1024)

/* box.p == NULL: the tenant's. */
struct secret_place {
	struct view box, name;
	const struct json_strmap *metadata; /* secrets_put: replace them; NULL: they stay */
};

struct secret_version {
	uint32_t version;
	int64_t created_ms;
};

/* What is told of a secret; never its value. */
struct secret_info {
	struct view name;
	struct secret_version *versions; /* the newest first */
	size_t n_versions;
	struct json_strmap metadata;
};

struct secret_list {
	struct secret_info *secrets;
	size_t n;
};

/* Values, in the order in which they were asked for. */
struct secret_values {
	const struct view *values;
	size_t n;
};

struct secret_rotation {
	struct view key; /* that took the place of the one before */
	uint32_t resealed;
};

/* The result is a const struct secret_info *. The value is copied, and every copy wiped. */
struct job *secrets_put(struct core *c, const struct actor *a, const struct secret_place *p,
			struct view value, job_done *done, void *arg, struct err *e) _must_check_;
/* A const struct secret_list *; the place has no name. */
struct job *secrets_list(struct core *c, const struct actor *a, const struct secret_place *p, job_done *done,
			 void *arg, struct err *e) _must_check_;
struct job *secrets_remove(struct core *c, const struct actor *a, const struct secret_place *p,
			   job_done *done, void *arg, struct err *e) _must_check_;
/* A const struct secret_rotation *. */
struct job *secrets_rotate(struct core *c, const struct actor *a, job_done *done, void *arg,
			   struct err *e) _must_check_;
/* The certificate that boxes trust, as PEM: a const struct view *. */
struct job *secrets_authority(struct core *c, const struct actor *a, job_done *done, void *arg,
			      struct err *e) _must_check_;

/* Values for something that is started in a box: a const struct secret_values *, in the order of the
 * list. */
struct job *secrets_read(struct core *c, const struct actor *a, struct view box,
			 const struct spec_secrets *list, job_done *done, void *arg,
			 struct err *e) _must_check_;
/* paddock-ai may have this secret of the box's or its tenant's for one request to this host: a
 * ticket, which is a const struct view *. The value does not come here. */
struct job *secrets_lend(struct box *b, struct view name, struct view host, job_done *done, void *arg,
			 struct err *e) _must_check_;
