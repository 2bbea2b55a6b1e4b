/*
 * Links between boxes: see bridges.h.
 */
#include "bridges.h"

#include <errno.h>
#include <stdlib.h>

#include "boxes.h"
#include "bridges_pair.h"
#include "core_base.h"
#include "log.h"
#include "rnd.h"
#include "who.h"
#include "wire_gen.h"
#include "poison.h"

#define LISTEN_MS 10000
#define RETRY_MS  2000
#define PAIRS_MAX 64 /* of one link; more wait to be accepted */

struct bridge {
	struct list node; /* of box->bridges */
	struct box *from;
	struct spec_link rule;
	struct call listening;
	bool up;
	struct bridges_pair *accepting; /* waits for a connection, or NULL */
	struct list pairs;              /* that are open */
	unsigned n_pairs;
	struct loop_timer retry;
	struct change *creating; /* somebody waits for the first listening */
};

/* A change of a box's links that is being made. */
struct change {
	struct job job;
	struct core *core;
	struct bridge *bridge; /* of a creation; NULL: it is gone already */
};

static struct bridge_view view_bridge(const struct box *from, const struct spec_link *l, bool up)
{
	return (struct bridge_view){ l->id, from->id, l->to, l->port, l->listen, up };
}

/* ---- connections ---- */

static void accept_next(struct bridge *g);

static void on_retry(struct loop_timer *t);

static void retry_later(struct bridge *g)
{
	if (!g->from->in->core->stopping)
		loop_timer_start(g->from->in->core->loop, &g->retry, RETRY_MS, on_retry);
}

static void on_pair_end(struct bridges_pair *p)
{
	struct bridge *g = p->arg;

	if (g->accepting == p) {
		g->accepting = NULL;
		free(p);
		if (g->up)
			retry_later(g);
		return;
	}
	list_del(&p->node);
	g->n_pairs--;
	free(p);
	accept_next(g);
}

static void on_pair_open(struct bridges_pair *p)
{
	struct bridge *g = p->arg;
	struct actor actor = { .tenant = g->from->tenant, .role = STORE_ROLE_USER };
	struct err e = { 0 };

	g->accepting = NULL;
	list_append(&g->pairs, &p->node);
	g->n_pairs++;
	accept_next(g);
	if (bridges_pair_connect(p, g->from->in->core, &actor, view_of(g->rule.to), g->rule.port, &e) < 0) {
		bridges_pair_close(p);
		on_pair_end(p);
	}
}

static void accept_next(struct bridge *g)
{
	struct err e = { 0 };

	if (!g->up || g->accepting || g->n_pairs >= PAIRS_MAX)
		return;
	struct bridges_pair *p = calloc(1, sizeof(*p));
	if (!p) {
		retry_later(g);
		return;
	}
	p->on_open = on_pair_open;
	p->on_end = on_pair_end;
	p->arg = g;
	g->accepting = p;
	if (bridges_pair_accept(p, g->from, g->rule.listen, &e) < 0) {
		g->accepting = NULL;
		free(p);
		retry_later(g);
	}
}

/* ---- listening ---- */

static void free_bridge(struct bridge *g)
{
	loop_timer_stop(&g->retry);
	guest_cancel(&g->listening);
	if (g->accepting) {
		bridges_pair_close(g->accepting);
		free(g->accepting);
	}
	LIST_EACH (it, &g->pairs) {
		struct bridges_pair *p = CONTAINER(it, struct bridges_pair, node);
		bridges_pair_close(p);
		free(p);
	}
	list_del(&g->node);
	free(g);
}

/* A creation that came to nothing. */
static void fail_creation(struct bridge *g, const struct err *e)
{
	struct change *ch = g->creating;

	free_bridge(g);
	job_finish(&ch->job, NULL, e);
	free(ch);
}

static void on_created(void *arg, const struct err *e)
{
	struct change *ch = arg;
	struct bridge *g = ch->bridge;

	if (g)
		g->creating = NULL;
	core_store_result(ch->core, e);
	struct bridge_view v = g ? view_bridge(g->from, &g->rule, g->up) : (struct bridge_view){ 0 };
	struct err gone = { 0 };
	if (!g)
		err_set(&gone, ERR_STATE, "the sandbox was removed");
	job_finish(&ch->job, &v, e ? e : g ? NULL : &gone);
	free(ch);
}

static int on_listening(struct call *c, const struct frame *f, int fd)
{
	struct bridge *g = CONTAINER(c, struct bridge, listening);
	struct box_spec *s = &g->from->spec;
	struct err e = { 0 };

	if (g->up || (f->flags & FRAME_LAST))
		return -EBADMSG;
	g->up = true;
	if (g->creating) {
		if (s->n_links == SPEC_LINKS_MAX)
			err_set(&e, ERR_QUOTA, "a sandbox has at most %d links", SPEC_LINKS_MAX);
		else
			s->links[s->n_links++] = g->rule;
		if (e.code || boxes_store_change(g->from, on_created, g->creating, &e) < 0) {
			fail_creation(g, &e);
			return 0;
		}
	}
	accept_next(g);
	return 0;
}

static void on_listen_fail(struct call *c, const struct err *said)
{
	struct bridge *g = CONTAINER(c, struct bridge, listening);
	bool stored = g->up;
	struct err e;

	g->up = false;
	guest_read_fail(said, &e);
	if (g->creating && !stored)
		fail_creation(g, &e);
	else
		retry_later(g); /* where the box has stopped that ends by itself */
}

static const struct call_ops listen_ops = { .on_reply = on_listening, .on_fail = on_listen_fail };

static int begin_listening(struct bridge *g, struct err *e)
{
	struct wire_listen msg = { .port = g->rule.listen };

	g->listening = (struct call){ .ops = &listen_ops, .background = true };
	return guest_call(g->from->in->guest, &g->listening, WIRE_TYPE_LISTEN, LISTEN_MS, 0, &wire_listen_msg,
			  &msg, e);
}

static void on_retry(struct loop_timer *t)
{
	struct bridge *g = CONTAINER(t, struct bridge, retry);
	struct err e = { 0 };

	if (g->up)
		accept_next(g);
	else if (g->from->state.status == BOX_RUNNING && begin_listening(g, &e) < 0)
		retry_later(g);
}

static struct bridge *add_bridge(struct box *b, const struct spec_link *rule)
{
	struct bridge *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->from = b;
	g->rule = *rule;
	list_init(&g->pairs);
	list_append(&b->in->bridges, &g->node);
	return g;
}

static struct bridge *find_bridge(struct box *b, const char *id)
{
	LIST_EACH (it, &b->in->bridges) {
		struct bridge *g = CONTAINER(it, struct bridge, node);
		if (strcmp(g->rule.id, id) == 0)
			return g;
	}
	return NULL;
}

static void listen_again(struct box *b)
{
	struct err e = { 0 };

	for (size_t i = 0; i < b->spec.n_links; i++) {
		struct bridge *g = find_bridge(b, b->spec.links[i].id);
		if (!g)
			g = add_bridge(b, &b->spec.links[i]);
		if (!g || g->up || mux_is_open(&g->listening) || g->listening.queued)
			continue;
		loop_timer_stop(&g->retry);
		if (begin_listening(g, &e) < 0)
			retry_later(g);
	}
}

void bridges_start(struct core *c)
{
	LIST_EACH (it, &c->boxes->all) {
		struct box *b = BOX_OF(it, order);
		if (b->state.status == BOX_RUNNING)
			listen_again(b);
	}
}

/* ---- the end ---- */

static void drop(struct box *b, size_t i)
{
	struct bridge *g = find_bridge(b, b->spec.links[i].id);

	if (g && g->creating)
		g->creating->bridge = NULL;
	if (g)
		free_bridge(g);
	memmove(&b->spec.links[i], &b->spec.links[i + 1], (--b->spec.n_links - i) * sizeof(b->spec.links[0]));
}

static void unlink_others(struct box *b)
{
	struct core *c = b->in->core;
	struct err e = { 0 };

	if (c->stopping || b->in->hidden)
		return;
	LIST_EACH (it, &c->boxes->all) {
		struct box *other = BOX_OF(it, order);
		bool changed = false;
		for (size_t i = other->spec.n_links; i-- > 0;)
			if (strcmp(other->spec.links[i].to, b->id) == 0) {
				drop(other, i);
				changed = true;
			}
		if (changed && boxes_store_change(other, core_store_done, c, &e) < 0)
			log_warn("sandbox %s: its links: %s", other->id, e.msg);
	}
}

static void forget(struct box *b, const struct err *why)
{
	LIST_EACH (it, &b->in->bridges) {
		struct bridge *g = CONTAINER(it, struct bridge, node);
		if (g->creating && !g->up) {
			fail_creation(g, why);
		} else {
			if (g->creating)
				g->creating->bridge = NULL;
			free_bridge(g);
		}
	}
	unlink_others(b);
}

static void init(struct box *b)
{
	list_init(&b->in->bridges);
}

const struct box_part bridges_part = {
	.init = init,
	.runs = listen_again,
	.row_goes = unlink_others, /* no link is left that leads nowhere */
	.forget = forget,
};

/* ---- what clients ask for ---- */

static bool is_taken(const struct box *b, uint16_t listen)
{
	LIST_EACH (it, &b->in->bridges)
		if (CONTAINER(it, struct bridge, node)->rule.listen == listen)
			return true;
	return false;
}

static int check_wish(const struct box *from, const struct box *to, const struct bridge_wish *w,
		      struct err *e)
{
	if (from == to)
		return err_set(e, ERR_INVALID, "from and to are the same sandbox");
	if (from->tenant != to->tenant)
		return err_set(e, ERR_FORBIDDEN, "both sandboxes must be of one tenant");
	if (from->state.status != BOX_RUNNING)
		return err_set(e, ERR_STATE, "the sandbox that is to listen does not run");
	if (from->spec.n_links >= SPEC_LINKS_MAX)
		return err_set(e, ERR_QUOTA, "a sandbox has at most %d links", SPEC_LINKS_MAX);
	if (is_taken(from, w->listen ? w->listen : w->port))
		return err_set(e, ERR_CONFLICT, "the sandbox has a link on this port already");
	return 0;
}

struct job *bridges_create(struct core *c, const struct actor *a, const struct bridge_wish *w, job_done *done,
			   void *arg, struct err *e)
{
	struct box *from = boxes_find(c, a, ACT_BOX_SHARE, w->from, e);
	struct box *to = from ? boxes_find(c, a, ACT_BOX_SHARE, w->to, e) : NULL;

	if (!to || check_wish(from, to, w, e) < 0)
		return NULL;
	struct spec_link rule = { .port = w->port, .listen = w->listen ? w->listen : w->port };
	rnd_name(rule.id, sizeof(rule.id) - 1);
	memcpy(rule.to, to->id, sizeof(to->id));
	struct change *ch = calloc(1, sizeof(*ch));
	struct bridge *g = ch ? add_bridge(from, &rule) : NULL;
	if (!g) {
		free(ch);
		err_sys(e, ERR_INTERNAL, ENOMEM, "link");
		return NULL;
	}
	*ch = (struct change){ .job = { .done = done, .arg = arg }, .core = c, .bridge = g };
	g->creating = ch;
	if (begin_listening(g, e) < 0) {
		free_bridge(g);
		free(ch);
		return NULL;
	}
	return &ch->job;
}

static void on_removed(void *arg, const struct err *e)
{
	struct change *ch = arg;

	core_store_result(ch->core, e);
	job_finish(&ch->job, "", e);
	free(ch);
}

static struct box *find_by_link(struct core *c, const struct actor *a, struct view id, size_t *ret_i)
{
	struct err ignored = { 0 };

	LIST_EACH (it, &c->boxes->all) {
		struct box *b = BOX_OF(it, order);
		for (size_t i = 0; i < b->spec.n_links; i++)
			if (view_is(id, b->spec.links[i].id) &&
			    auth_permit(a, ACT_BOX_SHARE, b->tenant, &ignored) >= 0) {
				*ret_i = i;
				return b;
			}
	}
	return NULL;
}

struct job *bridges_remove(struct core *c, const struct actor *a, struct view id, job_done *done, void *arg,
			   struct err *e)
{
	size_t i;
	struct box *b = find_by_link(c, a, id, &i);
	struct change *ch = b ? calloc(1, sizeof(*ch)) : NULL;

	if (!b)
		err_set(e, ERR_NOT_FOUND, "no such link");
	else if (!ch)
		err_sys(e, ERR_INTERNAL, ENOMEM, "link");
	if (!ch)
		return NULL;
	*ch = (struct change){ .job = { .done = done, .arg = arg }, .core = c };
	drop(b, i);
	if (boxes_store_change(b, on_removed, ch, e) < 0) {
		free(ch);
		return NULL;
	}
	return &ch->job;
}

void bridges_each(struct core *c, const struct actor *a, void (*each)(void *arg, const struct bridge_view *v),
		  void *arg)
{
	struct err ignored = { 0 };

	LIST_EACH (it, &c->boxes->all) {
		struct box *b = BOX_OF(it, order);
		if (b->in->pooled || b->spec.n_links == 0 ||
		    auth_permit(a, ACT_BOX_SHARE, b->tenant, &ignored) < 0)
			continue;
		for (size_t i = 0; i < b->spec.n_links; i++) {
			const struct bridge *g = find_bridge(b, b->spec.links[i].id);
			struct bridge_view v = view_bridge(b, &b->spec.links[i], g && g->up);
			each(arg, &v);
		}
	}
}
