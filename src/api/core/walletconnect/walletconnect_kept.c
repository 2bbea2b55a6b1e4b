/*
 * What is kept of WalletConnect, in the vault: a record for each session, and the key by which the relay
 * knows this installation. The owner of the records is no tenant (a tenant's id has no dot), so that nobody
 * can list or read them as secrets.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "address.h"
#include "clock.h"
#include "core_base.h"
#include "fd.h"
#include "log.h"
#include "num.h"
#include "rnd.h"
#include "text.h"
#include "vault.h"
#include "walletconnect_impl.h"
#include "wire_gen.h"
#include "poison.h"

#define OWNER      ".walletconnect"
#define IDENTITY   "client"
#define RECORD_MAX (48u * 1024)
#define REPLY_MAX  (4u * 1024 * 1024)
#define READ_MOST  8 /* records in one call: the vault bounds an answer */

struct keep {
	struct call call;
	struct core *core;
	const struct pb_msg *reply;
	wc_kept_done *done;
	void *arg;
	int (*take)(struct keep *k, const void *msg); /* NULL: the answer says nothing */
};

static void finish(struct keep *k, const struct err *e)
{
	wc_kept_done *done = k->done;
	void *arg = k->arg;

	free(k);
	if (done)
		done(arg, e);
}

static int on_reply(struct call *call, const struct frame *f, int fd)
{
	struct keep *k = CONTAINER(call, struct keep, call);
	struct arena a = { .max = REPLY_MAX, .secret = true };
	void *msg = arena_alloc(&a, k->reply->size);
	int r = !(f->flags & FRAME_LAST) ? -EBADMSG
		: msg                    ? mux_decode(call, f->body, k->reply, &a, msg)
					 : -ENOMEM;

	fd_close(fd);
	if (r >= 0 && (!k->take || k->take(k, msg) == 0)) /* else the next call was begun with it */
		finish(k, NULL);
	arena_done(&a);
	return r;
}

static void on_fail(struct call *call, const struct err *e)
{
	struct err copy = *e;

	finish(CONTAINER(call, struct keep, call), &copy);
}

static const struct call_ops ops = { .on_reply = on_reply, .on_fail = on_fail };

static void ask(struct keep *k, uint16_t type, const struct pb_msg *request, const void *msg,
		const struct pb_msg *reply)
{
	struct err e = { 0 };

	k->call = (struct call){ .ops = &ops };
	k->reply = reply;
	if (vault_call(k->core, &k->call, type, request, msg, &e) < 0)
		finish(k, &e);
}

static struct keep *new_keep(struct core *c, wc_kept_done *done, void *arg)
{
	struct keep *k = calloc(1, sizeof(*k));
	struct err e = { 0 };

	if (!k) {
		err_sys(&e, ERR_INTERNAL, ENOMEM, "a session");
		done(arg, &e);
		return NULL;
	}
	*k = (struct keep){ .core = c, .done = done, .arg = arg };
	return k;
}

static void put(struct core *c, struct view name, struct view value, wc_kept_done *done, void *arg)
{
	struct keep *k = new_keep(c, done, arg);

	if (k)
		ask(k, WIRE_TYPE_SECRET_PUT, &wire_secret_put_msg,
		    &(struct wire_secret_put){ .tenant = VIEW(OWNER), .name = name, .value = value },
		    &wire_secret_put_reply_msg);
}

/* ---- a record ---- */

static void put_hex(struct json_out *o, const char *key, const uint8_t bytes[WC_KEY])
{
	char hex[2 * WC_KEY + 1];

	text_hex(bytes, WC_KEY, hex);
	json_out_kz(o, key, hex);
	explicit_bzero(hex, sizeof(hex));
}

static void put_lists(struct json_out *o, const struct wc_session *s)
{
	json_out_key(o, "chains");
	json_out_array(o);
	for (size_t i = 0; i < s->n_chains; i++)
		json_out_u64(o, s->chains[i]);
	json_out_end(o, ']');
	json_out_key(o, "accounts");
	json_out_array(o);
	for (size_t i = 0; i < s->n_accounts; i++) {
		char address[ADDRESS_TEXT], text[128];
		address_text(s->accounts[i].address, address);
		snprintf(text, sizeof(text), "eip155:%" PRIu64 ":%s", s->accounts[i].chain, address);
		json_out_str(o, view_of(text));
	}
	json_out_end(o, ']');
	json_out_key(o, "asked");
	json_out_object(o);
	for (size_t i = 0; i < s->n_asked; i++)
		json_out_kz(o, s->asked[i].request, s->asked[i].id);
	json_out_end(o, '}');
	json_out_key(o, "late");
	json_out_array(o);
	for (size_t i = 0; i < s->n_asked; i++)
		if (s->asked[i].late)
			json_out_str(o, view_of(s->asked[i].request));
	json_out_end(o, ']');
}

void walletconnect_kept_put(struct wc_session *s, wc_kept_done *done, void *arg)
{
	_cleanup_(buf_done) struct buf text = { .max = RECORD_MAX, .secret = true };
	struct json_out o;

	json_out_init(&o, &text);
	json_out_object(&o);
	json_out_kz(&o, "label", s->label);
	json_out_kz(&o, "name", s->name);
	json_out_kz(&o, "url", s->url);
	put_hex(&o, "key", s->key);
	put_hex(&o, "peer", s->peer);
	json_out_ki64(&o, "created_ms", s->created_ms);
	json_out_ki64(&o, "expires_ms", s->expires_ms);
	json_out_kbool(&o, "sends", s->sends);
	json_out_kbool(&o, "signs", s->signs);
	json_out_kbool(&o, "signs_typed", s->signs_typed);
	put_lists(&o, s);
	json_out_end(&o, '}');
	put(s->core, view_of(s->id), buf_view(&text), done, arg);
}

void walletconnect_kept_remove(struct core *c, const char *id, wc_kept_done *done, void *arg)
{
	struct keep *k = new_keep(c, done, arg);

	if (k)
		ask(k, WIRE_TYPE_SECRET_REMOVE, &wire_secret_remove_msg,
		    &(struct wire_secret_remove){ .tenant = VIEW(OWNER), .name = view_of(id) },
		    &wire_secret_removed_msg);
}

/* ---- reading ---- */

static void text_to(const struct json *doc, const char *key, char *dst, size_t size)
{
	const struct json *j = json_get(doc, key);

	if (!j || j->type != JSON_STRING || view_to_str(j->text, dst, size) < 0)
		dst[0] = 0;
}

static bool hex_to(const struct json *doc, const char *key, uint8_t ret[WC_KEY])
{
	const struct json *j = json_get(doc, key);

	return j && j->type == JSON_STRING && text_unhex(j->text, ret, WC_KEY) == 0;
}

static bool number_to(const struct json *doc, const char *key, int64_t *ret)
{
	const struct json *j = json_get(doc, key);

	return j && json_to_i64(j, ret) == 0;
}

static bool flag(const struct json *doc, const char *key)
{
	const struct json *j = json_get(doc, key);

	return j && j->type == JSON_BOOL && j->boolean;
}

static void read_late(const struct json *late, struct wc_session *s)
{
	for (size_t i = 0; late && i < late->n; i++)
		for (size_t k = 0; k < s->n_asked; k++)
			s->asked[k].late |= late->items[i].type == JSON_STRING &&
					    view_is(late->items[i].text, s->asked[k].request);
}

static bool read_lists(const struct json *doc, struct wc_session *s)
{
	const struct json *chains = json_get(doc, "chains"), *accounts = json_get(doc, "accounts"),
			  *asked = json_get(doc, "asked");

	for (size_t i = 0; chains && i < chains->n && s->n_chains < WCROOM_CHAINS; i++)
		if (json_to_u64(&chains->items[i], &s->chains[s->n_chains++]) < 0)
			return false;
	for (size_t i = 0; accounts && i < accounts->n && s->n_accounts < WC_ACCOUNTS; i++)
		if (wc_settle_account(accounts->items[i].text, &s->accounts[s->n_accounts++]) < 0)
			return false;
	for (size_t i = 0; asked && i < asked->n && s->n_asked < WCROOM_ASKED; i++, s->n_asked++)
		if (view_to_str(asked->members[i].key, s->asked[s->n_asked].request,
				sizeof(s->asked->request)) < 0 ||
		    view_to_str(asked->members[i].value.text, s->asked[s->n_asked].id, WC_ID) < 0)
			return false;
	read_late(json_get(doc, "late"), s);
	return true;
}

/* The place in the list: before what was made later. */
static struct list *later_than(struct core *c, int64_t created_ms)
{
	LIST_EACH (it, &c->walletconnect->sessions)
		if (CONTAINER(it, struct wc_session, link)->created_ms > created_ms)
			return it;
	return &c->walletconnect->sessions;
}

static void load_session(struct core *c, struct view id, struct view text)
{
	struct arena a = { .max = 8 * RECORD_MAX, .secret = true };
	struct wc_session *s = calloc(1, sizeof(*s));
	struct json *doc;
	struct err e = { 0 };

	if (s)
		*s = (struct wc_session){ .core = c, .stage = WC_OPEN };
	if (s && json_parse(&a, text, &doc, &e) == 0 && view_to_str(id, s->id, sizeof(s->id)) == 0 &&
	    hex_to(doc, "key", s->key) && hex_to(doc, "peer", s->peer) &&
	    number_to(doc, "created_ms", &s->created_ms) && number_to(doc, "expires_ms", &s->expires_ms) &&
	    read_lists(doc, s)) {
		text_to(doc, "label", s->label, sizeof(s->label));
		text_to(doc, "name", s->name, sizeof(s->name));
		text_to(doc, "url", s->url, sizeof(s->url));
		s->sends = flag(doc, "sends");
		s->signs = flag(doc, "signs");
		s->signs_typed = flag(doc, "signs_typed");
		wc_crypto_topic(s->key, s->topic);
		list_append(later_than(c, s->created_ms), &s->link);
		c->walletconnect->n++;
	} else {
		log_error("the session %.*s with a wallet cannot be read", VIEW_ARG(view_head(id, 40)));
		free(s);
	}
	arena_done(&a);
}

/* The vault lists names; values are read a few at a time. */
struct load {
	struct core *core;
	wc_kept_done *done;
	void *arg;
	size_t n, at;
	char names[WCROOM_SESSIONS + 1][WCROOM_ID];
};

static void end_load(struct load *l, const struct err *e)
{
	wc_kept_done *done = l->done;
	void *arg = l->arg;

	free(l);
	done(arg, e);
}

static void read_more(struct load *l);

static int take_values(struct keep *k, const void *msg)
{
	const struct wire_secret_read_reply *m = msg;
	struct load *l = k->arg;
	struct walletconnect *w = l->core->walletconnect;

	for (size_t i = 0; i < m->values.n && l->at < l->n; i++, l->at++) {
		if (strcmp(l->names[l->at], IDENTITY) != 0)
			load_session(l->core, view_of(l->names[l->at]), m->values.items[i]);
		else if (m->values.items[i].n == WC_SEED) {
			memcpy(w->seed, m->values.items[i].p, WC_SEED);
			w->has_seed = true;
		}
	}
	return 0;
}

static void on_values(void *arg, const struct err *e)
{
	struct load *l = arg;

	if (e)
		end_load(l, e);
	else
		read_more(l);
}

static void on_identity(void *arg, const struct err *e)
{
	struct load *l = arg;

	l->core->walletconnect->has_seed = !e;
	end_load(l, e);
}

static void read_more(struct load *l)
{
	struct wire_secret_wish wishes[READ_MOST] = { 0 };
	struct wire_secret_read m = { .tenant = VIEW(OWNER), .wishes.items = wishes };
	struct walletconnect *w = l->core->walletconnect;

	if (l->at >= l->n && w->has_seed) {
		end_load(l, NULL);
		return;
	}
	if (l->at >= l->n) {
		rnd_bytes(w->seed, WC_SEED);
		put(l->core, VIEW(IDENTITY), (struct view){ (const char *)w->seed, WC_SEED }, on_identity, l);
		return;
	}
	while (m.wishes.n < READ_MOST && l->at + m.wishes.n < l->n) {
		wishes[m.wishes.n].name = view_of(l->names[l->at + m.wishes.n]);
		m.wishes.n++;
	}
	struct keep *k = new_keep(l->core, on_values, l);
	if (!k)
		return;
	k->take = take_values;
	ask(k, WIRE_TYPE_SECRET_READ, &wire_secret_read_msg, &m, &wire_secret_read_reply_msg);
}

static int take_names(struct keep *k, const void *msg)
{
	const struct wire_secret_list_reply *m = msg;
	struct load *l = k->arg;

	for (size_t i = 0; i < m->secrets.n && l->n < ELEMS(l->names); i++)
		if (view_to_str(m->secrets.items[i].name, l->names[l->n], WCROOM_ID) == 0)
			l->n++;
	return 0;
}

void walletconnect_kept_load(struct core *c, wc_kept_done *done, void *arg)
{
	struct load *l = calloc(1, sizeof(*l));
	struct err e = { 0 };

	if (!l) {
		err_sys(&e, ERR_INTERNAL, ENOMEM, "the sessions with wallets");
		done(arg, &e);
		return;
	}
	*l = (struct load){ .core = c, .done = done, .arg = arg };
	struct keep *k = new_keep(c, on_values, l);
	if (!k)
		return;
	k->take = take_names;
	ask(k, WIRE_TYPE_SECRET_LIST, &wire_secret_list_msg,
	    &(struct wire_secret_list){ .tenant = VIEW(OWNER) }, &wire_secret_list_reply_msg);
}
