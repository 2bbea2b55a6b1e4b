/*
 * Field lists of HTTP/2 as a box and a server may send them: lines of "name\tvalue". What
 * is sent on must be proper whatever came, hold no placeholder that could be filled, and
 * what comes back no value.
 */
#include "fuzz.h"
#include "h2_head.h"

#include "poison.h"

#define SECRET "s3cret-Value"

static const struct policy_inject rules[] = { { .secret = "A", .header = "x-key", .prefix = "Key " },
					      { .secret = "A", .query = "key" },
					      { .secret = "A", .placeholder = true } };

static void read_list(struct view text, struct h2_head *h)
{
	h2_head_init(h, INJECT_HEAD);
	while (text.p && text.n) {
		struct view line = view_split(text, '\n', &text), value,
			    name = view_split(line, '\t', &value);
		h2_head_add(h, name, value.p ? value : VIEW(""), false);
	}
}

static bool has(struct view text, const char *what)
{
	return text.n && memmem(text.p, text.n, what, strlen(what));
}

/* Pseudo-headers first and each once, the rest in lower case and not of a connection. */
static void check_list(const struct h2_head *h, bool filled)
{
	bool over = false;

	for (size_t i = 0; i < h->n; i++) {
		struct http_header f = h2_head_get(h, i);
		bool pseudo = f.name.n && f.name.p[0] == ':';
		FUZZ_CHECK(f.name.n && !(pseudo && over));
		over = over || !pseudo;
		FUZZ_CHECK(!view_is(f.name, "connection") && !view_is(f.name, "transfer-encoding") &&
			   !view_is(f.name, "upgrade"));
		FUZZ_CHECK(!has(f.value, "\r") && !has(f.value, "\n"));
		if (filled) {
			FUZZ_CHECK(!view_is(f.name, "host") && !has(f.value, "{{secret.A}}"));
			FUZZ_CHECK(!view_is(f.name, "x-key") || view_is(f.value, "Key " SECRET));
		} else {
			FUZZ_CHECK(!has(f.value, SECRET) && !has(f.name, SECRET));
		}
	}
}

static void as_request(const struct h2_head *in)
{
	struct h2_request r;
	struct inject j = { 0 };
	struct h2_head out;

	if (h2_request_parse(in, VIEW("https"), &r) < 0) {
		FUZZ_CHECK(r.why);
		return;
	}
	struct inject_head h = { r.path, r.query, r.headers, r.n_headers };
	inject_init(&j, rules, ELEMS(rules));
	h2_head_init(&out, INJECT_OUT);
	if (inject_choose(&j, &h, true)) {
		inject_give(&j, VIEW("A"), VIEW(SECRET));
		FUZZ_CHECK(inject_ready(&j));
		if (h2_request_write(&r, VIEW("https"), &j, false, 5, &out) == 0)
			check_list(&out, true);
	}
	h2_head_done(&out);
	inject_done(&j);
}

static void as_answer(const struct h2_head *in)
{
	struct h2_answer a;
	struct h2_head out;
	struct mask m;

	mask_init(&m);
	FUZZ_CHECK(mask_add(&m, VIEW(SECRET)) == 0);
	h2_head_init(&out, INJECT_OUT);
	if (h2_answer_write(in, &m, &out, &a) == 0) {
		FUZZ_CHECK(a.status >= 100 && a.status <= 999 && out.n == in->n);
		check_list(&out, false);
	}
	h2_head_done(&out);
	h2_head_init(&out, INJECT_OUT);
	if (h2_trailers_write(in, NULL, &m, &out) == 0)
		check_list(&out, false);
	h2_head_done(&out);
	mask_done(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct h2_head in;

	if (size > 65536)
		return 0;
	read_list((struct view){ (const char *)data, size }, &in);
	as_request(&in);
	as_answer(&in);
	h2_head_done(&in);
	return 0;
}
