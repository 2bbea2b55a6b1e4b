/*
 * POST /tickets and GET /auth: a ticket stands in a URL instead of a key, for half a minute, and opens one
 * sandbox: its id, the end in seconds since 1970, the id of the key that asked for it, and an HMAC of all
 * three. It ends with the key, and so does one that was asked for with it.
 */
#include <stdio.h>

#include "aio_impl.h"
#include "clock.h"
#include "num.h"
#include "sha256.h"
#include "text.h"
#include "poison.h"

#define MAC_BYTES   16
#define SECONDS_MAX 3600
#define BODY_MAX    4096 /* clients send "{}", which means nothing */

static void seal(const struct core *c, const char *said, char ret[2 * MAC_BYTES + 1])
{
	uint8_t key[32], mac[SHA256_SIZE];

	sign_key(c, VIEW("aio ticket"), key);
	sha256_hmac((struct view){ (const char *)key, sizeof(key) }, view_of(said), mac);
	text_hex(mac, MAC_BYTES, ret);
	explicit_bzero(key, sizeof(key));
}

static void make(const struct core *c, const char *box, uint64_t end, const char *key,
		 char ret[AIO_TICKET_SIZE])
{
	char said[AIO_TICKET_SIZE], mac[2 * MAC_BYTES + 1];

	snprintf(said, sizeof(said), "%.20s.%llu.%.39s", box, (unsigned long long)end, key);
	seal(c, said, mac);
	snprintf(ret, AIO_TICKET_SIZE, "%.94s.%s", said, mac);
}

static uint64_t lifetime(const struct box *b)
{
	uint64_t seconds;

	if (num_u64(aio_variable(b, "TICKET_TTL_SECONDS"), &seconds) < 0 || !seconds)
		return AIO_TICKET_SECONDS;
	return MIN(seconds, (uint64_t)SECONDS_MAX);
}

void aio_ticket_make(const struct request *r, const struct box *b, char ret[AIO_TICKET_SIZE])
{
	make(r->core, b->id, (uint64_t)(clock_wall_ms() / 1000) + lifetime(b), r->actor.key, ret);
}

struct view aio_ticket_box(struct view ticket)
{
	struct view rest;
	return view_split(ticket, '.', &rest);
}

bool aio_ticket_fits(struct core *c, const struct box *b, struct view ticket, char ret_key[KEYS_ID_SIZE])
{
	struct view rest, end;
	char key[KEYS_ID_SIZE], right[AIO_TICKET_SIZE];
	uint64_t seconds;

	if (!view_is(view_split(ticket, '.', &rest), b->id))
		return false;
	end = view_split(rest, '.', &rest);
	if (view_to_str(view_split(rest, '.', &rest), key, sizeof(key)) < 0 || num_u64(end, &seconds) < 0 ||
	    seconds < (uint64_t)(clock_wall_ms() / 1000))
		return false;
	make(c, b->id, seconds, key, right);
	if (!view_eq_secret(ticket, view_of(right)) || !auth_stands(c, key))
		return false;
	memcpy(ret_key, key, sizeof(key));
	return true;
}

static void create(struct request *r)
{
	const struct box *b = aio_box(r);
	char ticket[AIO_TICKET_SIZE];

	if (!b)
		return;
	aio_ticket_make(r, b, ticket);
	struct json_out *o = answer_json(r);
	json_out_object(o);
	json_out_kz(o, "ticket", ticket);
	json_out_ku64(o, "expires_in", lifetime(b));
	json_out_end(o, '}');
	answer_send(r, 200);
}

/* Whoever comes here has shown what is needed. */
static void check(struct request *r)
{
	struct json_out *o = answer_json(r);

	json_out_object(o);
	json_out_kz(o, "status", "ok");
	json_out_end(o, '}');
	answer_send(r, 200);
}

const struct route aio_ticket_routes[] = {
	{ "POST", "/tickets", create, .body = ROUTE_WHOLE, .body_max = BODY_MAX, .query = "api_key",
	  .audit = "sandbox.ticket" },
	{ "GET", "/auth", check, .query = "api_key ticket" },
	{ 0 },
};
