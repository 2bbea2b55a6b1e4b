/*
 * Which steps of a build need not run: those that an earlier build of the tenant has run already, from the
 * same base, in the same order and with the same files. The key of a step is a hash of the key of the one
 * before (of the base, at first), of the step and of the files that it copies. A new build starts from the
 * files of a build that is ready, or of a state that was kept between steps (templates_kept.h), whichever has
 * more of its steps behind it.
 */
#include "templates_build.h"

#include <string.h>

#include "core_base.h"
#include "images.h"
#include "sha256.h"
#include "snapshots.h"
#include "templates_kept.h"
#include "text.h"
#include "poison.h"

static void add(struct sha256 *h, struct view v)
{
	uint64_t n = v.n;

	sha256_add(h, &n, sizeof(n));
	if (n)
		sha256_add(h, v.p, v.n);
}

/* What the build starts from: a snapshot does not change, and an image is named by its content. */
static int hash_base(const struct template_run *r, const struct template_plan *p, uint8_t ret[SHA256_SIZE])
{
	struct view image = p->image.n ? p->image : r->core->config->defaults.image, digest = VIEW("");
	struct sha256 h;

	if (!p->snapshot.n && images_resolve(r->core, image, &digest, NULL) < 0)
		return -1;
	sha256_init(&h);
	add(&h, p->snapshot);
	add(&h, digest);
	sha256_end(&h, ret);
	return 0;
}

static void hash_step(const struct template_step *s, uint8_t at[SHA256_SIZE])
{
	struct sha256 h;

	sha256_init(&h);
	sha256_add(&h, at, SHA256_SIZE);
	add(&h, s->type);
	for (size_t i = 0; i < s->args.n; i++)
		add(&h, s->args.items[i]);
	add(&h, s->hash);
	sha256_end(&h, at);
}

static const struct template_build *find(const struct template_run *r, const char *key)
{
	LIST_EACH (it, &r->core->templates->all) {
		const struct template *t = CONTAINER(it, struct template, order);
		if (t->tenant != r->build->of->tenant || t->removing)
			continue;
		TEMPLATES_EACH_BUILD(b, t)
		if (b->status == TEMPLATE_READY && strcmp(b->key, key) == 0 &&
		    snapshots_by_id(r->core, view_of(b->snapshot)))
			return b;
	}
	return NULL;
}

struct template_origin templates_cache_find(struct template_run *r, const struct template_plan *p)
{
	const struct tenant *t = r->build->of->tenant;
	struct template_origin best = { 0 };
	uint8_t hash[SHA256_SIZE];
	bool forced = p->force;

	r->keys = arena_array(&r->arena, r->n, sizeof(*r->keys));
	if (!r->keys || hash_base(r, p, hash) < 0) {
		r->keys = NULL;
		return best;
	}
	for (size_t i = 0; i < r->n; i++) {
		forced |= p->steps[i].force;
		hash_step(&r->steps[i], hash);
		text_hex(hash, sizeof(hash), r->keys[i]);
		const struct template_build *b = forced ? NULL : find(r, r->keys[i]);
		struct kept_step *k = forced ? NULL : templates_kept_find(r->core, t, r->keys[i]);
		if (k)
			memcpy(r->parent, k->key, sizeof(r->parent));
		if (b || k) {
			best = (struct template_origin){ .build = b, .kept = b ? NULL : k };
			r->at = i + 1;
		}
	}
	return best;
}
