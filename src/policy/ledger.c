/*
 * Sums over sliding windows: see ledger.h. The entries of an account stand in an array by time. A window has
 * the number of the oldest entry that it still counts; as time goes on that moves, and what it passes is
 * taken off the window's sum. Every entry is passed once by each window.
 */
#include "ledger.h"

#include <errno.h>
#include <stdlib.h>

#include "poison.h"

#define HOUR_MS (3600ll * 1000)
#define TIDY    1024 /* entries that no window counts are dropped when there are so many */

const int64_t ledger_length[LEDGER_WINDOWS] = { 24 * HOUR_MS, 7 * 24 * HOUR_MS, 30 * 24 * HOUR_MS };

struct entry {
	struct u256 amount; /* 0: released */
	int64_t at_ms;
	bool reserved;
};

struct ledger_account {
	struct map_node node;
	struct entry *entries;
	size_t n, room;
	uint64_t first;                  /* the number of entries[0] */
	uint64_t oldest[LEDGER_WINDOWS]; /* numbers */
	struct ledger_sums sums;
	uint64_t chain;
	uint8_t asset[ADDRESS_SIZE];
	size_t n_key;
	char key[LEDGER_SCOPE + 8 + ADDRESS_SIZE];
};

void ledger_init(struct ledger *l)
{
	map_init(&l->accounts);
}

void ledger_done(struct ledger *l)
{
	for (struct map_node *n = map_first(&l->accounts), *next; n; n = next) {
		struct ledger_account *a = CONTAINER(n, struct ledger_account, node);
		next = map_next(&l->accounts, n);
		map_del(&l->accounts, n);
		free(a->entries);
		free(a);
	}
	map_done(&l->accounts);
}

/* scope ‖ chain ‖ asset: the scope comes last in no other key, since the rest has one length. */
static size_t key_of(const struct ledger_what *w, char key[static LEDGER_SCOPE + 8 + ADDRESS_SIZE])
{
	if (w->scope.n > LEDGER_SCOPE)
		return 0;
	memcpy(key, w->scope.p, w->scope.n);
	memcpy(key + w->scope.n, &w->chain, 8);
	memcpy(key + w->scope.n + 8, w->asset, ADDRESS_SIZE);
	return w->scope.n + 8 + ADDRESS_SIZE;
}

static struct ledger_account *find(struct ledger *l, const struct ledger_what *w)
{
	char key[LEDGER_SCOPE + 8 + ADDRESS_SIZE];
	const size_t n = key_of(w, key);
	struct map_node *node = n ? map_get(&l->accounts, (struct view){ key, n }) : NULL;

	return node ? CONTAINER(node, struct ledger_account, node) : NULL;
}

static struct ledger_account *find_or_make(struct ledger *l, const struct ledger_what *w)
{
	struct ledger_account *a = find(l, w);

	if (a)
		return a;
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->n_key = key_of(w, a->key);
	a->chain = w->chain;
	memcpy(a->asset, w->asset, ADDRESS_SIZE);
	if (!a->n_key || map_put(&l->accounts, &a->node, (struct view){ a->key, a->n_key }) < 0) {
		free(a);
		return NULL;
	}
	return a;
}

static void take(struct u256 *sum, const struct u256 *amount)
{
	/* A sum holds what was added to it, so this cannot fail; a sum that were too low would let more pass.
	 */
	if (u256_sub(sum, amount, sum) < 0)
		abort();
}

static void advance(struct ledger_account *a, int64_t now_ms)
{
	for (int w = 0; w < LEDGER_WINDOWS; w++)
		while (a->oldest[w] < a->first + a->n) {
			const struct entry *e = &a->entries[a->oldest[w] - a->first];
			if (now_ms - e->at_ms < ledger_length[w])
				break;
			take(&a->sums.window[w], &e->amount);
			a->oldest[w]++;
		}
}

/* Drops what no window counts and nobody may still release. */
static void tidy(struct ledger_account *a)
{
	size_t old = (size_t)(a->oldest[LEDGER_MONTH] - a->first);

	if (old < TIDY || old < a->n / 2)
		return;
	for (size_t i = 0; i < old; i++)
		if (a->entries[i].reserved)
			old = i;
	memmove(a->entries, a->entries + old, (a->n - old) * sizeof(*a->entries));
	a->n -= old;
	a->first += old;
}

static int append(struct ledger_account *a, const struct entry *e)
{
	if (a->n == a->room) {
		const size_t room = a->room ? 2 * a->room : 16;
		struct entry *more = reallocarray(a->entries, room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		a->entries = more;
		a->room = room;
	}
	a->entries[a->n++] = *e;
	return 0;
}

int ledger_add(struct ledger *l, const struct ledger_what *what, const struct u256 *amount, int64_t at_ms,
	       bool reserved, struct ledger_entry *ret)
{
	struct ledger_account *a = find_or_make(l, what);
	struct u256 lifetime;

	if (!a)
		return what->scope.n > LEDGER_SCOPE ? -EINVAL : -ENOMEM;
	if (a->n && at_ms < a->entries[a->n - 1].at_ms)
		return -EINVAL;
	/* No window's sum is larger than the one of all time. */
	if (u256_add(&a->sums.lifetime, amount, &lifetime) < 0)
		return -EOVERFLOW;
	advance(a, at_ms);
	tidy(a);
	int r = append(a, &(struct entry){ *amount, at_ms, reserved });
	if (r < 0)
		return r;
	a->sums.lifetime = lifetime;
	for (int w = 0; w < LEDGER_WINDOWS; w++)
		a->sums.window[w] = u256_add_sat(&a->sums.window[w], amount);
	if (reserved)
		a->sums.reserved = u256_add_sat(&a->sums.reserved, amount);
	*ret = (struct ledger_entry){ a, a->first + a->n - 1 };
	return 0;
}

static struct entry *entry_of(const struct ledger_entry *e)
{
	struct ledger_account *a = e->account;

	return a && e->number >= a->first && e->number < a->first + a->n ? &a->entries[e->number - a->first]
									 : NULL;
}

void ledger_commit(struct ledger_entry *e)
{
	struct entry *x = entry_of(e);

	if (x && x->reserved) {
		take(&e->account->sums.reserved, &x->amount);
		x->reserved = false;
	}
}

void ledger_release(struct ledger_entry *e)
{
	struct ledger_account *a = e->account;
	struct entry *x = entry_of(e);

	ledger_commit(e);
	if (x) {
		for (int w = 0; w < LEDGER_WINDOWS; w++)
			if (e->number >= a->oldest[w])
				take(&a->sums.window[w], &x->amount);
		take(&a->sums.lifetime, &x->amount);
		x->amount = U256_ZERO;
	}
	*e = (struct ledger_entry){ 0 };
}

void ledger_sums(struct ledger *l, const struct ledger_what *what, int64_t now_ms, struct ledger_sums *ret)
{
	struct ledger_account *a = find(l, what);

	*ret = (struct ledger_sums){ 0 };
	if (a) {
		advance(a, now_ms);
		*ret = a->sums;
	}
}

void ledger_each(struct ledger *l, struct view scope, int64_t now_ms,
		 void (*fn)(void *arg, uint64_t chain, const uint8_t *asset, const struct ledger_sums *s),
		 void *arg)
{
	for (struct map_node *n = map_first(&l->accounts); n; n = map_next(&l->accounts, n)) {
		struct ledger_account *a = CONTAINER(n, struct ledger_account, node);
		if (a->n_key != scope.n + 8 + ADDRESS_SIZE || memcmp(a->key, scope.p, scope.n) != 0)
			continue;
		advance(a, now_ms);
		fn(arg, a->chain, a->asset, &a->sums);
	}
}
