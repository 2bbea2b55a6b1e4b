/*
 * From a request to the port it is for: see plane.h.
 */
#include "plane.h"

#include <errno.h>
#include <stdlib.h>

#include "json.h"
#include "plane_target.h"
#include "poison.h"

struct plane {
	struct core *core;
	struct loop *loop;
	void (*next)(struct http_exchange *x, void *arg);
	void *arg;
	struct plane_own own[PLANE_OWN_MAX];
	size_t n_own;
};

/* ---- life ---- */

struct plane *plane_new(struct core *c, struct loop *l, void (*next)(struct http_exchange *x, void *arg), void *arg,
			struct err *e)
{
	struct plane *p = calloc(1, sizeof(*p));
	if (!p) {
		err_sys(e, ERR_INTERNAL, ENOMEM, "plane");
		return NULL;
	}
	p->core = c;
	p->loop = l;
	p->next = next;
	p->arg = arg;
	return p;
}

void plane_free(struct plane *p)
{
	free(p);
}

void plane_serve(struct plane *p, const struct plane_own *own)
{
	assert(p->n_own < PLANE_OWN_MAX);
	p->own[p->n_own++] = *own;
}

/* ---- answers ---- */

void plane_unknown_box(struct http_exchange *x, struct view id)
{
	struct buf b = BUF_INIT(1024);
	struct json_out o;

	json_out_init(&o, &b);
	json_out_object(&o);
	json_out_kstr(&o, "sandboxId", view_head(id, BOX_ID));
	json_out_kz(&o, "message", "The sandbox was not found");
	json_out_ku64(&o, "code", 502);
	json_out_end(&o, '}');
	http_reply(x, 502, "application/json", buf_view(&b), NULL, 0);
	buf_done(&b);
}

/* ---- which port ---- */

static bool by_header(const struct http_exchange *x, struct plane_name *ret)
{
	struct view id = http_get_header(x, "e2b-sandbox-id"), port = http_get_header(x, "e2b-sandbox-port");

	if (!id.p)
		return false;
	*ret = (struct plane_name){ .id = id, .port = PLANE_ENVD };
	if (port.p && !plane_target_port(port, &ret->port))
		ret->port = 0;
	return true;
}

static bool by_own(struct plane *p, const struct http_exchange *x, struct plane_name *ret)
{
	for (size_t i = 0; i < p->n_own; i++) {
		const struct plane_own *own = &p->own[i];
		struct view id = own->find ? own->find(x, p->core, own->arg) : VIEW_NONE;
		if (id.p) {
			*ret = (struct plane_name){ .id = id, .port = own->port };
			return true;
		}
	}
	return false;
}

static const struct plane_own *own_port(const struct plane *p, uint16_t port)
{
	for (size_t i = 0; i < p->n_own; i++)
		if (p->own[i].port == port)
			return &p->own[i];
	return NULL;
}

/* A box that a client may know of. */
static const struct box *find_box(struct core *c, struct view id)
{
	const struct box *b = boxes_by_id(c, id);

	return b && !b->hidden && !b->pooled && b->state.status != BOX_DELETING ? b : NULL;
}

void plane_request(struct http_exchange *x, void *arg)
{
	struct plane *p = arg;
	struct plane_name name;

	if (!plane_target_host(x->host, core_config(p->core)->ports.domain, &name) && !by_header(x, &name) &&
	    !by_own(p, x, &name)) {
		p->next(x, p->arg);
		return;
	}
	const struct box *b = name.port ? find_box(p->core, name.id) : NULL;
	const struct plane_own *own = own_port(p, name.port);
	if (!b || !own) {
		plane_unknown_box(x, name.id);
		return;
	}
	struct plane_target t = { .core = p->core,
				  .box = b,
				  .actor = { .tenant = b->tenant, .role = STORE_ROLE_USER },
				  .port = name.port };
	own->serve(x, &t, own->arg);
}
