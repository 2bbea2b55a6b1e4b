/*
 * Hashes of the audit log: see audit_chain.h.
 */
#include "audit_chain.h"

#include <inttypes.h>
#include <stdio.h>

#include "poison.h"

static void add(struct sha256 *s, struct view v)
{
	char head[24];
	int n = snprintf(head, sizeof(head), "%zu:", v.n);

	sha256_add(s, head, (size_t)n);
	sha256_add(s, v.p ? v.p : "", v.n);
	sha256_add(s, "\n", 1);
}

static void add_number(struct sha256 *s, int64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, n);
	add(s, view_of(text));
}

void audit_chain_hash(const struct audit_fact *f, const uint8_t before[SHA256_SIZE], uint8_t ret[SHA256_SIZE])
{
	const struct view texts[] = { f->tenant, f->role,   f->key,    f->via,     f->from, f->request,
				      f->action, f->target, f->detail, f->verdict, f->code };
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, before, SHA256_SIZE);
	add(&s, f->chain);
	add_number(&s, (int64_t)f->number);
	add_number(&s, (int64_t)f->id);
	add_number(&s, f->at_ms);
	for (size_t i = 0; i < ELEMS(texts); i++)
		add(&s, texts[i]);
	sha256_end(&s, ret);
}
