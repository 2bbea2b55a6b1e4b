/*
 * Tokens for the files of a workspace: see disk.h.
 */
#include "boxes.h"
#include "sign.h"
#include "who.h"
#include "workspaces.h"
#include "poison.h"

void workspace_token_of(const struct core *c, const struct workspace *w, char ret[TOKENS_SIZE])
{
	const struct view parts[] = { VIEW("paddock token 1"), VIEW("workspace"), view_of(w->id) };
	memcpy(ret, w->id, BOX_ID);
	sign_parts(c, parts, ELEMS(parts), ret + BOX_ID);
}

const struct workspace *workspace_token_opens(const struct core *c, struct view id, struct view given,
					      struct actor *ret, struct err *e)
{
	const struct workspace *w = workspaces_by_id(c, id);
	char want[TOKENS_SIZE];

	if (w)
		workspace_token_of(c, w, want);
	if (!w || !w->ready || !view_eq_secret(given, view_of(want))) {
		err_set(e, ERR_UNAUTHORIZED, "the token does not open this volume");
		return NULL;
	}
	*ret = (struct actor){ .tenant = w->tenant, .role = STORE_ROLE_USER };
	return w;
}
