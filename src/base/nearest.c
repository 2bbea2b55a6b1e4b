/*
 * The distance is the number of insertions, deletions, substitutions and swaps of
 * neighbours between two words (optimal string alignment), without regard to case.
 * A third of the word may be wrong. A word that is the beginning of a candidate, or
 * goes on where a candidate ends, counts as one mistake: "memory" for "memory_mb".
 */
#include "nearest.h"

#include "poison.h"

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c == '-' ? '_' : c;
}

static unsigned distance(struct view a, struct view b)
{
	unsigned rows[3][NEAREST_MAX + 1];
	unsigned *before = rows[0], *last = rows[1], *now = rows[2];

	for (size_t j = 0; j <= b.n; j++)
		last[j] = (unsigned)j;
	for (size_t i = 1; i <= a.n; i++) {
		now[0] = (unsigned)i;
		for (size_t j = 1; j <= b.n; j++) {
			unsigned same = lower(a.p[i - 1]) == lower(b.p[j - 1]);
			unsigned d = last[j - 1] + !same;

			d = MIN(d, MIN(last[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && lower(a.p[i - 1]) == lower(b.p[j - 2]) &&
			    lower(a.p[i - 2]) == lower(b.p[j - 1]))
				d = MIN(d, before[j - 2] + 1);
			now[j] = d;
		}
		unsigned *free = before;
		before = last;
		last = now;
		now = free;
	}
	return last[b.n];
}

static bool begins(struct view word, struct view with)
{
	return with.n >= 3 && word.n > with.n && view_eq_nocase(view_head(word, with.n), with);
}

void nearest_try(struct nearest *n, const char *candidate)
{
	struct view c = view_of(candidate);
	unsigned d, most = (unsigned)MAX(n->word.n / 3, (size_t)1);

	if (n->word.n < 2 || n->word.n > NEAREST_MAX || c.n < 2 || c.n > NEAREST_MAX)
		return;
	d = begins(c, n->word) || begins(n->word, c) ? 1 : distance(n->word, c);
	if (d > MIN(most, 3u) || (n->best && d >= n->distance))
		return;
	n->best = candidate;
	n->distance = d;
}
