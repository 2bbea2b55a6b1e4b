/*
 * Events of agents' requests: told by spend.h when the signer has stored the change.
 */
#include <stdio.h>

#include "agents.h"
#include "core_base.h"
#include "events.h"
#include "spends.h"
#include "poison.h"

static void on_change(struct spend_watch *w, enum spend_change what, const struct spend_view *v)
{
	static const enum event_type types[] = { [SPEND_ASKED] = EVENT_TX_PENDING,
						 [SPEND_DECIDED] = EVENT_TX_DECIDED,
						 [SPEND_CHANGED] = EVENT_TX_CHANGED };
	struct core *c = CONTAINER(w, struct spends, events)->core;
	struct map_node *n = map_get(&c->agents->by_id, v->item->agent);
	const struct agent *a = n ? CONTAINER(n, struct agent, by_id) : NULL;
	_cleanup_(buf_done) struct buf summary = BUF_INIT(16u * 1024);
	char chain[40];

	if (!v->tenant)
		return; /* the agent is gone, and so is everybody who could want to know */
	snprintf(chain, sizeof(chain), "eip155:%llu", (unsigned long long)v->item->chain);
	events_emit_transaction(
		c, types[what],
		&(struct event_transaction){
			.tenant = v->tenant,
			.box = a ? view_of(a->box) : VIEW(""),
			.id = v->item->id,
			.agent = v->item->agent,
			.agent_name = view_of(v->agent_name),
			.chain = view_of(chain),
			.state = sgn_state_name(v->item->state),
			.summary = spend_name_native(&summary, c, v->item->chain, v->item->summary) });
}

void spend_events_start(struct core *c)
{
	c->spends->events.on_change = on_change;
	spend_watch(c, &c->spends->events);
}
