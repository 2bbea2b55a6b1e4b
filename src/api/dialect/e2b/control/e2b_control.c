/*
 * E2B's control plane: what its files share. See e2b_impl.h.
 */
#include "e2b_impl.h"

#include "disk.h"
#include "image.h"
#include "who.h"
#include "poison.h"

int e2b_read(struct request *r, const struct json_schema *s, void *out)
{
	return buf_len(&r->body) ? request_read(r, s, out) : 0;
}

/* ---- templates ---- */

bool e2b_is_default(struct view template)
{
	return view_is(template, "base") || view_is(template, "code-interpreter-v1");
}

/* An image under its whole name; without a tag, or with the one that is meant by none, also under its bare
 * one. */
static bool find_image(const struct request *r, struct view name, struct view bare, struct view tag,
		       struct view *ret)
{
	bool usual = !tag.p || view_is(tag, "default") || view_is(tag, "latest");
	struct buf latest = BUF_INIT(256);

	*ret = name;
	if (images_find(r->core, name))
		return true;
	*ret = bare;
	if (usual && images_find(r->core, bare))
		return true;
	buf_printf(&latest, "%.*s:latest", VIEW_ARG(view_head(bare, 200)));
	const struct image *i = usual ? images_find(r->core, buf_view(&latest)) : NULL;
	*ret = i ? arena_view(r->x->arena, buf_view(&latest)) : VIEW_NONE;
	buf_done(&latest);
	return ret->p;
}

int e2b_find_template(struct request *r, struct view name, struct e2b_template *ret, struct err *e)
{
	struct view tag, bare = view_split(name, ':', &tag);

	*ret = (struct e2b_template){ VIEW_NONE, VIEW_NONE, NULL };
	if (templates_find(r->core, &r->actor, ACT_SNAPSHOT_READ, bare, NULL)) {
		ret->build = templates_resolve(r->core, &r->actor, name, e);
		if (ret->build)
			ret->snapshot = view_of(ret->build->snapshot);
		return ret->build ? 0 : -1;
	}
	bool usual = !tag.p || view_is(tag, "default");
	if (usual && e2b_is_default(bare))
		return 0;
	const struct snapshot *s =
		usual ? snapshots_find(r->core, &r->actor, ACT_SNAPSHOT_READ, bare, NULL) : NULL;
	if (s)
		ret->snapshot = view_of(s->id);
	else if (!find_image(r, name, bare, tag, &ret->image))
		return err_set(e, ERR_NOT_FOUND, "template '%.*s' not found", (int)MIN(name.n, 100), name.p);
	return 0;
}

struct view e2b_template_of(const struct request *r, const struct box *b)
{
	const struct template_build *build = templates_of_box(r->core, b);

	if (build)
		return view_of(build->of->id);
	if (b->spec.snapshot.n)
		return b->spec.snapshot;
	return view_eq(b->spec.image, core_config(r->core)->defaults.image) ? VIEW("base") : b->spec.image;
}

struct view e2b_alias_of(const struct request *r, const struct box *b)
{
	const struct template_build *build = templates_of_box(r->core, b);
	return build ? view_of(build->of->name) : e2b_template_of(r, b);
}

/* ---- boxes ---- */

const char *e2b_state(const struct box *b)
{
	return b->state.status == BOX_RUNNING ? "running" : "paused";
}

/* With the port that the client used, so that its getHost() leads here: behind the last colon, but not within
 * an IPv6 address. */
static void put_domain(struct json_out *o, const struct request *r, struct view domain)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(512);
	struct view host = r->x->host;
	const char *colon = host.n ? memrchr(host.p, ':', host.n) : NULL;
	size_t n = colon ? host.n - (size_t)(colon - host.p) : 0;

	buf_add(&b, domain);
	if (colon && n > 1 && !memchr(colon, ']', n))
		buf_append(&b, colon, n);
	json_out_kstr(o, "domain", buf_view(&b));
}

void e2b_put_access(struct json_out *o, struct request *r, const struct box *b)
{
	struct view domain = core_config(r->core)->ports.domain;
	char token[TOKENS_SIZE];

	tokens_of(r->core, b, TOKEN_ENVD, token);
	json_out_kz(o, "envdAccessToken", token);
	tokens_of(r->core, b, TOKEN_TRAFFIC, token);
	if (!b->spec.ports_public)
		json_out_kz(o, "trafficAccessToken", token);
	explicit_bzero(token, sizeof(token));
	if (domain.n)
		put_domain(o, r, domain);
}

void e2b_put_sandbox(struct json_out *o, struct request *r, const struct box *b)
{
	json_out_object(o);
	json_out_kz(o, "sandboxID", b->id);
	json_out_kstr(o, "templateID", e2b_template_of(r, b));
	json_out_kstr(o, "alias", e2b_alias_of(r, b));
	json_out_kz(o, "clientID", E2B_CLIENT);
	json_out_kz(o, "envdVersion", E2B_ENVD_VERSION);
	e2b_put_access(o, r, b);
	json_out_end(o, '}');
}

void e2b_reply_sandbox(struct request *r, int status, const struct box *b)
{
	struct buf out = BUF_INIT(64 * 1024);
	struct json_out o;
	json_out_init(&o, &out);
	e2b_put_sandbox(&o, r, b);
	answer_reply(r, status, &out);
}

int e2b_take_timeout(const struct request *r, uint64_t seconds, uint64_t *ret, struct err *e)
{
	uint64_t max = core_config(r->core)->max.ttl_seconds;

	if (!max)
		max = INT32_MAX;
	if (seconds > max)
		return err_set(e, ERR_INVALID, "timeout cannot be greater than %llu seconds",
			       (unsigned long long)max);
	/* At once is as soon as possible; with us 0 is never. */
	*ret = MAX(seconds, (uint64_t)1);
	return 0;
}
