/*
 * The states of a connection, what can happen in each, and what follows.
 *
 *   direct:   LOOK  -> RESOLVE -> CONNECT -> UNSEEN, HTTP, OPAQUE
 *   proxy:    PROXY -> RESOLVE -> CONNECT -> UNSEEN, HTTP
 *   DNS:      DNS
 *   then:     UNSEEN -> OPAQUE, HTTP or INTERCEPT, when the first bytes have been judged
 *             HTTP -> WAIT -> OPAQUE, for a WebSocket; HTTP -> DRAIN, after the last request
 *
 * What is connected goes on in the state that was found meanwhile (flow->mode). Nothing of
 * the client's reaches the server before it has left UNSEEN. Every state leads to OVER.
 *
 * A row is a state, a line of it an event: who deals with it, and the states that may be
 * the next. A state that has no line for an event never meets it, because what brings it is
 * not awaited there (flow_wants); if it should, or if a step leads where it must not, the
 * connection is reset. OVER ignores everything: its memory stays until the end of the turn.
 */
#include "flow_impl.h"
#include "log.h"
#include "poison.h"

#define TO(s)  (1u << FLOW_##s)
#define BEGUN  (TO(RESOLVE) | TO(CONNECT) | TO(OVER)) /* where to is known, or refused */
#define JUDGED (TO(OPAQUE) | TO(HTTP) | TO(WAIT) | TO(INTERCEPT) | TO(DRAIN) | TO(OVER))
#define LOST                                                                                                 \
	{                                                                                                    \
		flow_on_lost, TO(OVER)                                                                       \
	}

static const struct flow_step table[FLOW_STATES][FLOW_EVENTS] = {
	/* clang-format off */
	[FLOW_LOOK] = {
		[EVENT_BYTES]      = { look_on_bytes,        TO(LOOK) | BEGUN },
		[EVENT_END]        = LOST,
		[EVENT_GONE]       = LOST,
		[EVENT_TIME]       = { look_on_time,         TO(LOOK) | TO(CONNECT) | TO(OVER) },
		[EVENT_POLICY]     = { flow_stay,            TO(LOOK) },
	},
	[FLOW_PROXY] = {
		[EVENT_BYTES]      = { proxy_on_bytes,       TO(PROXY) | BEGUN },
		[EVENT_END]        = LOST,
		[EVENT_GONE]       = LOST,
		[EVENT_TIME]       = LOST,
		[EVENT_POLICY]     = { flow_stay,            TO(PROXY) },
	},
	[FLOW_DNS] = {
		[EVENT_BYTES]      = { relay_on_dns,         TO(DNS) | TO(OVER) },
		[EVENT_END]        = LOST,
		[EVENT_GONE]       = LOST,
		[EVENT_TIME]       = LOST,
		[EVENT_POLICY]     = { flow_stay,            TO(DNS) },
	},
	[FLOW_RESOLVE] = {
		[EVENT_GONE]       = LOST,
		[EVENT_RESOLVED]   = { dial_on_resolved,     TO(CONNECT) | TO(OVER) },
		[EVENT_TIME]       = { dial_on_unresolved,   TO(OVER) },
		[EVENT_POLICY]     = { flow_stay,            TO(RESOLVE) },
	},
	[FLOW_CONNECT] = {
		[EVENT_GONE]       = LOST,
		[EVENT_DIALLED]    = { dial_on_event,        TO(CONNECT) | TO(UNSEEN) | JUDGED },
		[EVENT_TIME]       = { dial_on_event,        TO(CONNECT) | TO(OVER) },
		[EVENT_POLICY]     = { flow_on_policy,       TO(CONNECT) | TO(OVER) },
	},
	[FLOW_UNSEEN] = {
		[EVENT_BYTES]      = { look_on_bytes,        TO(UNSEEN) | JUDGED },
		[EVENT_END]        = { look_on_end,          TO(OPAQUE) | TO(OVER) },
		[EVENT_GONE]       = LOST,
		[EVENT_BYTES_BACK] = { relay_on_bytes_back,  TO(UNSEEN) | TO(OVER) },
		[EVENT_END_BACK]   = { flow_stay,            TO(UNSEEN) },
		[EVENT_TIME]       = { flow_on_idle,         TO(UNSEEN) | TO(OVER) },
		[EVENT_POLICY]     = { flow_on_policy,       TO(UNSEEN) | TO(OVER) },
	},
	[FLOW_OPAQUE] = {
		[EVENT_BYTES]      = { relay_on_bytes,       TO(OPAQUE) | TO(OVER) },
		[EVENT_END]        = { flow_stay,            TO(OPAQUE) },
		[EVENT_GONE]       = LOST,
		[EVENT_BYTES_BACK] = { relay_on_bytes_back,  TO(OPAQUE) | TO(OVER) },
		[EVENT_END_BACK]   = { flow_stay,            TO(OPAQUE) },
		[EVENT_TIME]       = { flow_on_idle,         TO(OPAQUE) | TO(OVER) },
		[EVENT_POLICY]     = { flow_on_policy,       TO(OPAQUE) | TO(OVER) },
	},
	[FLOW_HTTP] = {
		[EVENT_BYTES]      = { web_on_bytes,         TO(HTTP) | TO(WAIT) | TO(DRAIN) | TO(OVER) },
		[EVENT_END]        = { flow_stay,            TO(HTTP) },
		[EVENT_GONE]       = LOST,
		[EVENT_BYTES_BACK] = { relay_on_bytes_back,  TO(HTTP) | TO(OVER) },
		[EVENT_END_BACK]   = { flow_stay,            TO(HTTP) },
		[EVENT_TIME]       = { flow_on_idle,         TO(HTTP) | TO(OVER) },
		[EVENT_POLICY]     = { flow_on_policy,       TO(HTTP) | TO(OVER) },
	},
	[FLOW_WAIT] = {
		[EVENT_GONE]       = LOST,
		[EVENT_BYTES_BACK] = { web_on_answer,        TO(OPAQUE) | TO(HTTP) | TO(DRAIN) | TO(OVER) },
		[EVENT_END_BACK]   = { flow_stay,            TO(WAIT) },
		[EVENT_TIME]       = { flow_on_idle,         TO(WAIT) | TO(OVER) },
		[EVENT_POLICY]     = { flow_on_policy,       TO(WAIT) | TO(OVER) },
	},
	[FLOW_INTERCEPT] = {
		[EVENT_BYTES]      = { inside_on_bytes,      TO(INTERCEPT) | TO(OVER) },
		[EVENT_END]        = { flow_stay,            TO(INTERCEPT) },
		[EVENT_GONE]       = LOST,
		[EVENT_BYTES_BACK] = { inside_on_bytes_back, TO(INTERCEPT) | TO(OVER) },
		[EVENT_END_BACK]   = { inside_on_end_back,   TO(INTERCEPT) | TO(OVER) },
		[EVENT_TIME]       = { inside_on_time,       TO(INTERCEPT) | TO(OVER) },
		[EVENT_POLICY]     = { flow_on_policy,       TO(INTERCEPT) | TO(OVER) },
	},
	[FLOW_DRAIN] = {
		[EVENT_BYTES]      = { flow_stay,            TO(DRAIN) }, /* nobody reads them */
		[EVENT_END]        = { flow_stay,            TO(DRAIN) },
		[EVENT_GONE]       = LOST,
		[EVENT_BYTES_BACK] = { relay_on_bytes_back,  TO(DRAIN) | TO(OVER) },
		[EVENT_END_BACK]   = { flow_stay,            TO(DRAIN) },
		[EVENT_TIME]       = { flow_on_idle,         TO(DRAIN) | TO(OVER) },
		[EVENT_POLICY]     = { flow_on_policy,       TO(DRAIN) | TO(OVER) },
	},
	[FLOW_OVER] = {
		[0 ... FLOW_EVENTS - 1] = { flow_stay,       TO(OVER) },
	},
	/* clang-format on */
};
static_assert(FLOW_STATES <= 32, "a step's next states are bits");
static_assert(FLOW_STATES == 12 && FLOW_EVENTS == 9, "a new state or event has its lines above");

static const char *const names[] = {
	[FLOW_LOOK] = "look",           [FLOW_PROXY] = "proxy",     [FLOW_DNS] = "dns",
	[FLOW_RESOLVE] = "resolve",     [FLOW_CONNECT] = "connect", [FLOW_UNSEEN] = "unseen",
	[FLOW_OPAQUE] = "opaque",       [FLOW_HTTP] = "http",       [FLOW_WAIT] = "wait",
	[FLOW_INTERCEPT] = "intercept", [FLOW_DRAIN] = "drain",     [FLOW_OVER] = "over",
};
static_assert(ELEMS(names) == FLOW_STATES, "every state has a name");

const struct flow_step *states_step(enum flow_state s, enum flow_event e)
{
	return &table[s][e];
}

void states_event(struct flow *f, enum flow_event e, const struct flow_what *w)
{
	enum flow_state was = f->state;
	const struct flow_step *step = &table[was][e];

	if (step->run)
		step->run(f, w);
	if (step->run && (step->next & 1u << f->state))
		return;
	log_error("sandbox %s: a connection in state %s met event %d and is in state %s", f->box->id,
		  names[was], e, names[f->state]);
	flow_end(f, true);
}
