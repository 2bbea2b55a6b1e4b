/*
 * Signed URLs: see sign.h.
 */
#include "sign.h"

#include <stdio.h>
#include <stdlib.h>

#include "boxes.h"
#include "clock.h"
#include "core_base.h"
#include "num.h"
#include "rnd.h"
#include "sha256.h"
#include "spec_make.h"
#include "text.h"
#include "who.h"
#include "poison.h"

#define SETTING    "url_secret"
#define HMAC_BLOCK 64

static_assert(sizeof(((struct signed_url *)0)->box) > BOX_ID, "room for an id");

/* ---- HMAC-SHA256 (RFC 2104) ---- */

static void hmac_start(struct sha256 *s, const uint8_t secret[SIGN_SECRET], uint8_t pad)
{
	uint8_t block[HMAC_BLOCK];
	memset(block, pad, sizeof(block));
	for (size_t i = 0; i < SIGN_SECRET; i++)
		block[i] ^= secret[i];
	sha256_init(s);
	sha256_add(s, block, sizeof(block));
	explicit_bzero(block, sizeof(block));
}

static void hmac_end(struct sha256 *s, const uint8_t secret[SIGN_SECRET], uint8_t ret[SHA256_SIZE])
{
	uint8_t inner[SHA256_SIZE];
	sha256_end(s, inner);
	hmac_start(s, secret, 0x5c);
	sha256_add(s, inner, sizeof(inner));
	sha256_end(s, ret);
}

/* With its length before it: no two lists of parts are the same bytes. */
static void add_part(struct sha256 *s, struct view v)
{
	uint8_t n[8];
	for (int i = 0; i < 8; i++)
		n[i] = (uint8_t)((uint64_t)v.n >> 8 * i);
	sha256_add(s, n, sizeof(n));
	sha256_add(s, v.p, v.n);
}

void sign_parts(const struct core *c, const struct view *parts, size_t n, char ret[SIGN_SIZE])
{
	struct sha256 s;
	uint8_t mac[SHA256_SIZE];

	hmac_start(&s, c->who->sign_secret, 0x36);
	for (size_t i = 0; i < n; i++)
		add_part(&s, parts[i]);
	hmac_end(&s, c->who->sign_secret, mac);
	text_hex(mac, sizeof(mac), ret);
	explicit_bzero(mac, sizeof(mac));
}

void sign_key(const struct core *c, struct view purpose, uint8_t ret[32])
{
	const struct view parts[] = { VIEW("paddock key 1"), purpose };
	char text[SIGN_SIZE];

	sign_parts(c, parts, ELEMS(parts), text);
	if (text_unhex(view_of(text), ret, SHA256_SIZE) < 0)
		abort(); /* text_hex wrote it */
	explicit_bzero(text, sizeof(text));
}

static void sign(const struct core *c, const char *box, struct view method, const struct file_place *p,
		 int64_t expires_s, char ret[SIGN_SIZE])
{
	char until[24];

	snprintf(until, sizeof(until), "%lld", (long long)expires_s);
	const struct view parts[] = { VIEW("paddock url 1"), view_of(box), method, p->path, p->user,
				      view_of(until) };
	sign_parts(c, parts, ELEMS(parts), ret);
}

/* ---- the secret ---- */

void sign_load(struct core *c, const struct store_setting *s)
{
	if (view_is(s->name, SETTING) && s->value.n == SIGN_SECRET) {
		memcpy(c->who->sign_secret, s->value.p, SIGN_SECRET);
		c->who->has_sign_secret = true;
	}
}

int sign_ensure(struct core *c, struct err *e)
{
	if (c->who->has_sign_secret)
		return 0;
	rnd_bytes(c->who->sign_secret, SIGN_SECRET);
	c->who->has_sign_secret = true;
	struct store_setting s = { VIEW(SETTING), { (const char *)c->who->sign_secret, SIGN_SECRET } };
	store_setting_put(c->store, &s, core_store_done, c);
	return 0;
}

/* ---- making and checking ---- */

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

int sign_check(struct core *c, const struct file_place *p, struct view method, struct view expires,
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
