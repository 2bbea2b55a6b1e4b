/*
 * Authentication and permission: see auth.h.
 */
#include "auth.h"

#include "boxes.h"
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
	if (!k)
		return err_set(e, ERR_UNAUTHORIZED,
			       "a valid key is needed (Authorization: Bearer, or X-API-Key)");
	*ret = (struct actor){ .tenant = k->tenant, .role = k->role };
	memcpy(ret->key, k->id, sizeof(ret->key));
	return 0;
}

static const struct {
	bool known, admin, on_box;
} rules[ACTS] = {
	[ACT_BOX_CREATE] = { .known = true },
	[ACT_BOX_LIST] = { .known = true },
	[ACT_BOX_READ] = { .known = true, .on_box = true },
	[ACT_BOX_DELETE] = { .known = true, .on_box = true },
	[ACT_BOX_EXEC] = { .known = true, .on_box = true },
	[ACT_FILE_READ] = { .known = true, .on_box = true },
	[ACT_FILE_WRITE] = { .known = true, .on_box = true },
	[ACT_IMAGE_LIST] = { .known = true },
	[ACT_CAPABILITIES] = { .known = true },
	[ACT_IMAGE_CHANGE] = { .known = true, .admin = true },
	[ACT_KEYS] = { .known = true, .admin = true },
	[ACT_POSTURE] = { .known = true, .admin = true },
	[ACT_METRICS] = { .known = true, .admin = true },
};

int auth_permit(const struct actor *a, enum act act, const struct box *b, struct err *e)
{
	bool admin = a->role == STORE_ROLE_ADMIN;

	if (!a->tenant || (!admin && a->role != STORE_ROLE_USER))
		return err_set(e, ERR_UNAUTHORIZED, "a valid key is needed");
	if (act >= ACTS || !rules[act].known || rules[act].on_box != (b != NULL))
		return err_set(e, ERR_FORBIDDEN, "not permitted");
	if (rules[act].admin && !admin)
		return err_set(e, ERR_FORBIDDEN, "an admin key is needed");
	/* The same words as for a box that never was: its existence is nobody's business. */
	if (b && !admin && b->tenant != a->tenant)
		return boxes_unknown(e);
	return 0;
}
