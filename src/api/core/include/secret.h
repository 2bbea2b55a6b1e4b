/*
 * Secrets as clients see them: set, listed by name, removed; of a tenant or of one box.
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
};

/* The result is a const struct wire_secret_info *. The value is copied, and every copy wiped. */
struct job *secrets_put(struct core *c, const struct actor *a, const struct secret_place *p,
			struct view value, job_done *done, void *arg, struct err *e) _must_check_;
/* A const struct wire_secret_list_reply *; the place has no name. */
struct job *secrets_list(struct core *c, const struct actor *a, const struct secret_place *p, job_done *done,
			 void *arg, struct err *e) _must_check_;
struct job *secrets_remove(struct core *c, const struct actor *a, const struct secret_place *p,
			   job_done *done, void *arg, struct err *e) _must_check_;
/* A const struct wire_vault_rotated *. */
struct job *secrets_rotate(struct core *c, const struct actor *a, job_done *done, void *arg,
			   struct err *e) _must_check_;
/* The certificate that boxes trust: a const struct wire_vault_ca_reply *. */
struct job *secrets_authority(struct core *c, const struct actor *a, job_done *done, void *arg,
			      struct err *e) _must_check_;

/* Values for something that is started in a box: a const struct wire_secret_read_reply *, in the order of the
 * list. */
struct job *secrets_read(struct core *c, const struct actor *a, struct view box,
			 const struct spec_secrets *list, job_done *done, void *arg,
			 struct err *e) _must_check_;
/* paddock-ai may have this secret of the box's or its tenant's for one request to this host: a const struct
 * wire_vault_lent *. The value does not come here. */
struct job *secrets_lend(struct box *b, struct view name, struct view host, job_done *done, void *arg,
			 struct err *e) _must_check_;
