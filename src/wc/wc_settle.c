/*
 * What a wallet offers when it settles a session: see wc_sign.h. Everything here is the wallet's word.
 * Accounts on other kinds of chains are skipped; one of ours that cannot be read refuses the whole.
 */
#include "wc_sign.h"

#include "address.h"
#include "num.h"
#include "text.h"
#include "poison.h"

static int wrong(struct err *e, const char *what)
{
	return err_set(e, ERR_BAD_REQUEST, "the wallet's session has no valid %s", what);
}

int wc_settle_account(struct view v, struct wc_account *ret)
{
	struct view rest, chain, address;

	if (!view_is(view_split(v, ':', &rest), "eip155"))
		return -1;
	chain = view_split(rest, ':', &address);
	if (!chain.n || chain.p[0] == '0' || num_u64(chain, &ret->chain) < 0 ||
	    address_parse(address, ret->address) < 0)
		return -1;
	return 0;
}

static int read_accounts(const struct json *list, struct wc_settlement *s, struct err *e)
{
	s->n_accounts = 0;
	if (!list || list->type != JSON_ARRAY || list->n > WC_ACCOUNTS)
		return wrong(e, "list of accounts");
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i].type != JSON_STRING ||
		    wc_settle_account(list->items[i].text, &s->accounts[s->n_accounts++]) < 0)
			return wrong(e, "account");
	return 0;
}

static int read_methods(const struct json *list, struct wc_settlement *s, struct err *e)
{
	if (!list || list->type != JSON_ARRAY)
		return wrong(e, "list of methods");
	s->sends = s->signs = s->signs_typed = false;
	for (size_t i = 0; i < list->n; i++) {
		struct view name = list->items[i].type == JSON_STRING ? list->items[i].text : VIEW_NONE;
		s->sends |= view_is(name, "eth_sendTransaction");
		s->signs |= view_is(name, "personal_sign");
		s->signs_typed |= view_is(name, "eth_signTypedData_v4");
	}
	return 0;
}

int wc_settle_namespaces(const struct json *namespaces, struct wc_settlement *ret, struct err *e)
{
	const struct json *ours = json_get(namespaces, "eip155");

	if (!ours)
		return wrong(e, "namespace eip155");
	if (read_accounts(json_get(ours, "accounts"), ret, e) < 0 ||
	    read_methods(json_get(ours, "methods"), ret, e) < 0)
		return -1;
	return ret->n_accounts ? 0 : wrong(e, "account");
}

static struct view words(const struct json *object, const char *key)
{
	const struct json *j = json_get(object, key);
	struct view v = j && j->type == JSON_STRING ? view_head(j->text, WC_TEXT_MAX) : VIEW("");

	return view_head(v, text_utf8_prefix(v));
}

int wc_settle_read(const struct json *params, struct wc_settlement *ret, struct err *e)
{
	const struct json *controller = json_get(params, "controller"),
			  *key = json_get(controller, "publicKey"), *meta = json_get(controller, "metadata"),
			  *expiry = json_get(params, "expiry");

	*ret = (struct wc_settlement){ 0 };
	if (!key || key->type != JSON_STRING || text_unhex(key->text, ret->controller, WC_KEY) < 0)
		return wrong(e, "controller");
	if (!expiry || json_to_i64(expiry, &ret->expiry_s) < 0)
		return wrong(e, "expiry");
	ret->name = words(meta, "name");
	ret->url = words(meta, "url");
	ret->description = words(meta, "description");
	return wc_settle_namespaces(json_get(params, "namespaces"), ret, e);
}
