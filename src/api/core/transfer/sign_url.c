/*
 * Signed URLs: see transfer.h.
 */
#include <stdio.h>

#include "boxes.h"
#include "clock.h"
#include "num.h"
#include "sign.h"
#include "spec_make.h"
#include "transfer.h"
#include "who.h"
#include "poison.h"

static_assert(sizeof(((struct signed_url *)0)->box) > BOX_ID, "room for an id");

static void sign(const struct core *c, const char *box, struct view method, const struct file_place *p,
		 int64_t expires_s, char ret[SIGN_SIZE])
{
	char until[24];

	snprintf(until, sizeof(until), "%lld", (long long)expires_s);
	const struct view parts[] = { VIEW("paddock url 1"), view_of(box), method, p->path, p->user,
				      view_of(until) };
	sign_parts(c, parts, ELEMS(parts), ret);
}

/* HEAD is GET without its body. */
static struct view verb_of(struct view method)
{
	return view_is(method, "HEAD") ? VIEW("GET") : method;
}

int sign_url(struct core *c, const struct actor *a, const struct file_place *p, struct view method,
	     uint32_t seconds, struct signed_url *ret, struct err *e)
{
	if (!view_is(method, "GET") && !view_is(method, "PUT"))
		return err_set(e, ERR_INVALID, "method must be GET or PUT");
	if (seconds == 0 || seconds > SIGN_SECONDS_MAX)
		return err_set(e, ERR_INVALID, "expires_seconds must be between 1 and %d", SIGN_SECONDS_MAX);
	if (p->path.n < 2 || p->path.p[0] != '/' || p->path.n >= SPEC_PATH_MAX ||
	    memchr(p->path.p, 0, p->path.n))
		return err_set(e, ERR_INVALID, "path must be absolute, of at most %d bytes",
			       SPEC_PATH_MAX - 1);
	if (p->user.n && spec_check_user(p->user, "user", e) < 0)
		return -1;
	struct box *b = boxes_find(c, a, view_is(method, "GET") ? ACT_FILE_READ : ACT_FILE_WRITE, p->box, e);
	if (!b)
		return -1;
	*ret = (struct signed_url){ .expires_s = clock_wall_ms() / 1000 + seconds };
	memcpy(ret->box, b->id, sizeof(b->id));
	sign(c, b->id, method, p, ret->expires_s, ret->signature);
	return 0;
}

int sign_url_check(struct core *c, const struct file_place *p, struct view method, struct view expires,
		   struct view signature, struct actor *ret, struct err *e)
{
	char id[BOX_ID + 1], want[SIGN_SIZE];
	int64_t until;

	if (num_i64(expires, &until) < 0 || view_to_str(p->box, id, sizeof(id)) < 0)
		return err_set(e, ERR_FORBIDDEN, "the signature does not fit this request");
	sign(c, id, verb_of(method), p, until, want);
	if (!view_eq_secret(signature, view_of(want)))
		return err_set(e, ERR_FORBIDDEN, "the signature does not fit this request");
	if (until <= clock_wall_ms() / 1000)
		return err_set(e, ERR_FORBIDDEN, "the signature has expired");
	struct box *b = boxes_by_id(c, p->box);
	if (!b)
		return boxes_unknown(e);
	*ret = (struct actor){ .tenant = b->tenant, .role = STORE_ROLE_USER };
	return 0;
}
