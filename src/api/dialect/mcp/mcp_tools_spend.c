/*
 * The tool for transactions of agents. A model may list and read them. Deciding is its user's: the client
 * shows the card as a form (elicitation), and only an answer with the state that was sealed with this card,
 * for this caller and this call, is carried to the signer. The digest that is approved is the one in that
 * state.
 */
#include "card.h"
#include "mcp_tools.h"
#include "text.h"
#include "poison.h"

#define PAGE     20
#define FORM_KEY "decision"

struct spend_args {
	struct mcp_args head;
	struct view action, transaction;
};

static const struct json_field spend_fields[] = {
	{ "action", JSON_F_STRING, offsetof(struct spend_args, action), .min = 1, .nullable = true },
	{ "transaction", JSON_F_STRING, offsetof(struct spend_args, transaction), .min = 1, .max = 64,
	  .nullable = true },
};
const struct json_schema mcp_tools_transactions_args = { spend_fields, ELEMS(spend_fields) };
const size_t mcp_tools_transactions_size = sizeof(struct spend_args);

/* ---- what is told ---- */

static void put_one(struct json_out *o, const struct core *c, const struct spend_view *v)
{
	_cleanup_(buf_done) struct buf sentence = BUF_INIT(64u * 1024);

	card_sentence(&sentence, c, v);
	json_out_object(o);
	json_out_kstr(o, "id", v->item->id);
	json_out_kz(o, "state", sgn_state_name(v->item->state));
	json_out_kstr(o, "agent", v->item->agent);
	card_put_chain(o, "chain", v->item->chain);
	json_out_kstr(o, "summary", buf_view(&sentence));
	answer_put_time(o, "expires_at", v->item->state == SGN_STATE_PENDING ? v->item->expires_ms : 0);
	json_out_end(o, '}');
}

static void send_one(struct mcp_call *c, const struct spend_view *v, struct view text)
{
	struct mcp_object x;
	struct json_out *o = mcp_tools_open(&x);

	json_out_key(o, "transactions");
	json_out_array(o);
	put_one(o, c->core, v);
	json_out_end(o, ']');
	json_out_kstr(o, "text", text);
	mcp_tools_send(c, &x);
}

static void on_page(void *arg, const void *result, const struct err *e)
{
	const struct spend_page *p = result;
	struct mcp_call *c = arg;
	struct mcp_object x;

	c->job = NULL;
	if (e) {
		mcp_call_fail(c, e);
		return;
	}
	struct json_out *o = mcp_tools_open(&x);
	json_out_key(o, "transactions");
	json_out_array(o);
	for (size_t i = 0; i < p->n; i++)
		put_one(o, c->core, &p->items[i]);
	json_out_end(o, ']');
	json_out_kz(o, "text", NULL);
	mcp_tools_send(c, &x);
}

static void on_shown(void *arg, const void *result, const struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(MCP_RESULT_MAX);
	struct mcp_call *c = arg;

	c->job = NULL;
	if (e) {
		mcp_call_fail(c, e);
		return;
	}
	card_text(&text, c->core, result);
	send_one(c, result, buf_view(&text));
}

static void on_decided(void *arg, const void *result, const struct err *e)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(1024);
	const struct spend_view *v = result;
	struct mcp_call *c = arg;

	c->job = NULL;
	if (e) {
		mcp_call_fail(c, e);
		return;
	}
	buf_printf(&text, "The user has decided: the transaction is %s.", sgn_state_name(v->item->state));
	send_one(c, v, buf_view(&text));
}

/* ---- the form ---- */

static void put_form(struct json_out *o, struct view card, const struct card_confirm *confirm)
{
	json_out_object(o);
	json_out_kstr(o, "message", card);
	json_out_key(o, "requestedSchema");
	json_out_object(o);
	json_out_kz(o, "type", "object");
	json_out_key(o, "properties");
	json_out_object(o);
	json_out_key(o, "decision");
	json_out_raw(o,
		     VIEW("{\"type\":\"string\",\"title\":\"Decision\",\"enum\":[\"reject\",\"approve\"]}"));
	if (confirm) {
		json_out_key(o, "confirm");
		json_out_object(o);
		json_out_kz(o, "type", "string");
		json_out_kz(o, "title", "Digits of the address: this is dangerous");
		json_out_kz(o, "description", confirm->hint);
		json_out_ku64(o, "maxLength", sizeof(confirm->digits) - 1);
		json_out_end(o, '}');
	}
	json_out_end(o, '}');
	json_out_key(o, "required");
	json_out_raw(o, VIEW("[\"decision\"]"));
	json_out_end(o, '}');
	json_out_end(o, '}');
}

/* The state: the digest, and what must be typed. */
static void put_state(struct buf *out, const struct sgn_item *i, const char *confirm)
{
	char hex[65];

	text_hex(i->digest.p, 32, hex);
	buf_printf(out, "%s %s", hex, confirm ? confirm : "");
}

static void on_card(void *arg, const void *result, const struct err *e)
{
	_cleanup_(buf_done) struct buf card = BUF_INIT(MCP_RESULT_MAX), form = BUF_INIT(MCP_RESULT_MAX),
				       state = BUF_INIT(256);
	const struct spend_view *v = result;
	struct mcp_call *c = arg;
	struct err bad = { 0 };
	struct json_out o;
	struct card_confirm confirm;

	c->job = NULL;
	if (!e && (v->item->state != SGN_STATE_PENDING || v->item->digest.n != 32)) {
		err_set(&bad, ERR_STATE, "the transaction is %s", sgn_state_name(v->item->state));
		e = &bad;
	}
	if (e) {
		mcp_call_fail(c, e);
		return;
	}
	const bool danger = card_confirm(v->item, &confirm);
	card_text(&card, c->core, v);
	json_out_init(&o, &form);
	put_form(&o, buf_view(&card), danger ? &confirm : NULL);
	put_state(&state, v->item, danger ? confirm.digits : NULL);
	if (form.bad || state.bad || !mcp_input_ask(c, FORM_KEY, "elicitation/create", buf_view(&form))) {
		err_set(&bad, ERR_UNSUPPORTED,
			"this client cannot ask its user (elicitation): decide in the dashboard or with "
			"`paddock tx approve`");
		mcp_call_fail(c, &bad);
		return;
	}
	mcp_input_send(c, buf_view(&state));
}

static bool text_is(const struct json *object, const char *key, struct view wanted)
{
	const struct json *v = json_get(object, key);
	return v && v->type == JSON_STRING && view_eq_nocase(v->text, wanted);
}

/* The user's answer, with our own state beside it. */
static void carry(struct mcp_call *c, const struct json *answer)
{
	const struct spend_args *a = c->own;
	const struct json *content = json_get(answer, "content");
	struct view confirm = VIEW_NONE;
	const struct view hex = view_split(c->state, ' ', &confirm);
	struct err e = { 0 };
	uint8_t digest[32];

	if (!text_is(answer, "action", VIEW("accept"))) {
		err_set(&e, ERR_CANCELLED, "the user has not decided; the transaction still waits");
	} else if (text_is(content, "decision", VIEW("reject"))) {
		mcp_call_await(
			c,
			spend_reject(c->core, &c->actor, a->transaction, VIEW("by MCP"), on_decided, c, &e),
			&e);
		return;
	} else if (!text_is(content, "decision", VIEW("approve")) || text_unhex(hex, digest, 32) < 0) {
		err_set(&e, ERR_INVALID, "the user's answer is neither approve nor reject");
	} else if (confirm.n && !text_is(content, "confirm", confirm)) {
		err_set(&e, ERR_CANCELLED,
			"the digits that were typed are not those of the address; the transaction still "
			"waits");
	} else {
		mcp_call_await(
			c, spend_approve(c->core, &c->actor, a->transaction, digest, on_decided, c, &e), &e);
		return;
	}
	mcp_call_fail(c, &e);
}

static void decide(struct mcp_call *c)
{
	const struct spend_args *a = c->own;
	const struct json *answer = c->state.p ? mcp_input(c, FORM_KEY) : NULL;
	struct err e = { 0 };

	if (view_is(view_of(c->actor.key), "anonymous")) {
		err_set(&e, ERR_FORBIDDEN, "a decision needs a key, so that it is known who made it");
		mcp_call_fail(c, &e);
	} else if (answer) {
		carry(c, answer);
	} else {
		mcp_call_await(c, spend_get(c->core, &c->actor, a->transaction, on_card, c, &e), &e);
	}
}

/* ---- the tool ---- */

void mcp_tools_transactions(struct mcp_call *c)
{
	const struct spend_args *a = c->own;
	const bool list = !a->action.n || view_is(a->action, "list");
	struct err e = { 0 };

	if (list) {
		const struct spend_filter f = { .state = SGN_STATE_PENDING, .max = PAGE };
		mcp_call_await(c, spend_list(c->core, &c->actor, &f, on_page, c, &e), &e);
	} else if (!a->transaction.n) {
		err_set(&e, ERR_INVALID, "transaction must name one of those that action list shows");
		mcp_call_fail(c, &e);
	} else if (view_is(a->action, "show")) {
		mcp_call_await(c, spend_get(c->core, &c->actor, a->transaction, on_shown, c, &e), &e);
	} else if (view_is(a->action, "decide")) {
		decide(c);
	} else {
		err_set(&e, ERR_INVALID, "action must be list, show or decide");
		mcp_call_fail(c, &e);
	}
}
