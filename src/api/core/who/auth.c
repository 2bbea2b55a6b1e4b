/*
 * Authentication and permission: see who.h.
 */
#include "keys.h"
#include "who.h"

#include "core_base.h"
#include "sha256.h"
#include "text.h"
#include "poison.h"

#define SECRET_BYTES 20

int auth_actor(struct core *c, struct view token, struct actor *ret, struct err *e)
{
	uint8_t secret[SECRET_BYTES], hash[SHA256_SIZE];
	const struct key *k = NULL;

	if ((view_starts(token, "pdk_") || view_starts(token, "e2b_")) &&
	    text_unhex(view_skip(token, 4), secret, sizeof(secret)) >= 0) {
		sha256_of((struct view){ (const char *)secret, sizeof(secret) }, hash);
		k = keys_by_hash(c, hash);
	}
	explicit_bzero(secret, sizeof(secret));
	if (!k && token.n && c->config->n_keys) { /* one that was made elsewhere is known by its text */
		sha256_of(token, hash);
		k = keys_by_hash(c, hash);
	}
	if (!k)
		return err_set(e, ERR_UNAUTHORIZED,
			       "a valid key is needed (Authorization: Bearer, or X-API-Key)");
	*ret = (struct actor){ .tenant = k->tenant, .role = k->role };
	memcpy(ret->key, k->id, sizeof(ret->key));
	return 0;
}

int auth_anonymous(struct core *c, struct actor *ret, struct err *e)
{
	const struct tenant *t = keys_tenant_by_ref(c, VIEW("default"));

	if (!t)
		return err_set(e, ERR_UNAUTHORIZED, "a valid key is needed");
	*ret = (struct actor){ .tenant = t, .role = STORE_ROLE_USER, .key = "anonymous" };
	return 0;
}

static const struct {
	bool known, admin, on_box, owned, use;
} rules[ACTS] = {
	[ACT_BOX_CREATE] = { .known = true },
	[ACT_BOX_LIST] = { .known = true },
	[ACT_BOX_READ] = { .known = true, .on_box = true },
	[ACT_BOX_DELETE] = { .known = true, .on_box = true },
	[ACT_BOX_EXEC] = { .known = true, .on_box = true, .use = true },
	[ACT_BOX_CHANGE] = { .known = true, .on_box = true },
	[ACT_BOX_COPY] = { .known = true, .on_box = true },
	[ACT_BOX_PORTS] = { .known = true, .on_box = true, .use = true },
	[ACT_BOX_SHARE] = { .known = true, .on_box = true },
	[ACT_FILE_READ] = { .known = true, .on_box = true, .use = true },
	[ACT_FILE_WRITE] = { .known = true, .on_box = true, .use = true },
	[ACT_SNAPSHOT_LIST] = { .known = true },
	[ACT_SNAPSHOT_READ] = { .known = true, .owned = true },
	[ACT_SNAPSHOT_DELETE] = { .known = true, .owned = true },
	[ACT_WORKSPACE_CREATE] = { .known = true },
	[ACT_WORKSPACE_LIST] = { .known = true },
	[ACT_WORKSPACE_READ] = { .known = true, .owned = true },
	[ACT_WORKSPACE_WRITE] = { .known = true, .owned = true },
	[ACT_WORKSPACE_DELETE] = { .known = true, .owned = true },
	[ACT_IMAGE_LIST] = { .known = true },
	[ACT_CAPABILITIES] = { .known = true },
	[ACT_EVENTS] = { .known = true },
	[ACT_WEBHOOKS] = { .known = true },
	[ACT_SECRETS] = { .known = true },
	[ACT_BOX_SECRETS] = { .known = true, .on_box = true },
	[ACT_AGENT_CREATE] = { .known = true },
	[ACT_AGENT_LIST] = { .known = true },
	[ACT_AGENT_READ] = { .known = true, .owned = true },
	[ACT_AGENT_CHANGE] = { .known = true, .owned = true },
	[ACT_VAULT] = { .known = true, .admin = true },
	[ACT_TENANTS] = { .known = true, .admin = true },
	[ACT_IMAGE_CHANGE] = { .known = true, .admin = true },
	[ACT_KEYS] = { .known = true, .admin = true },
	[ACT_POSTURE] = { .known = true, .admin = true },
	[ACT_METRICS] = { .known = true, .admin = true },
};

static int permit(const struct actor *a, enum act act, bool on_box, bool owned, struct err *e)
{
	bool admin = a->role == STORE_ROLE_ADMIN;

	if (!a->tenant || (!admin && a->role != STORE_ROLE_USER))
		return err_set(e, ERR_UNAUTHORIZED, "a valid key is needed");
	if (act >= ACTS || !rules[act].known || rules[act].on_box != on_box || rules[act].owned != owned)
		return err_set(e, ERR_FORBIDDEN, "not permitted");
	if (rules[act].admin && !admin)
		return err_set(e, ERR_FORBIDDEN, "an admin key is needed");
	return 0;
}

static bool owns(const struct actor *a, const struct tenant *owner)
{
	return a->role == STORE_ROLE_ADMIN || a->tenant == owner;
}

int auth_unknown(struct err *e, const char *what)
{
	return err_set(e, ERR_NOT_FOUND, "no such %s", what);
}

int auth_permit(const struct actor *a, enum act act, const struct tenant *owner, struct err *e)
{
	if (permit(a, act, owner != NULL, false, e) < 0)
		return -1;
	/* The same words as for a box that never was: its existence is nobody's business. */
	return owner && !owns(a, owner) ? auth_unknown(e, "sandbox") : 0;
}

int auth_permit_on(const struct actor *a, enum act act, const struct tenant *owner, const char *what,
		   struct err *e)
{
	if (permit(a, act, false, true, e) < 0)
		return -1;
	return owns(a, owner) ? 0 : auth_unknown(e, what);
}

bool auth_is_use(enum act act)
{
	return act < ACTS && rules[act].use;
}
