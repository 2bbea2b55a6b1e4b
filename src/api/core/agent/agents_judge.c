/*
 * Who an agent is and how often it may ask: see agent.h.
 */
#include "agents.h"

#include "core_base.h"
#include "poison.h"

struct agent *agents_of_box(struct core *c, const struct box *b)
{
	struct view id = b ? view_of(b->id) : VIEW_NONE;

	LIST_EACH (it, &c->agents->all) {
		struct agent *a = CONTAINER(it, struct agent, order);
		if (id.n && !a->removing && view_is(id, a->box))
			return a;
	}
	return NULL;
}

struct view agents_id_of_box(const struct core *c, struct view box)
{
	LIST_EACH (it, &c->agents->all) {
		const struct agent *a = CONTAINER(it, struct agent, order);
		if (box.n && view_is(box, a->box))
			return view_of(a->id);
	}
	return VIEW("");
}

bool agents_has_token(const struct agent *a, const struct box *b, struct view id, struct view token)
{
	return view_is(id, a->id) && tokens_fit(a->core, b, TOKEN_AGENT, token);
}

/* Fixed windows, as Assegai counts: the first request after a window begins the next. */
bool agents_window(struct agent *a, enum agent_window w, unsigned n, unsigned *ret_wait)
{
	static const struct {
		unsigned most, ms;
	} windows[AGENT_WINDOWS] = { [AGENT_OPENAI] = { 100, 60000 },
				     [AGENT_ANTHROPIC] = { 50, 60000 },
				     [AGENT_RPC] = { 30, 10000 } };
	uint64_t now = loop_now(a->core->loop);

	if (now - a->windows[w].began_ms >= windows[w].ms) {
		a->windows[w].began_ms = now;
		a->windows[w].n = 0;
	}
	*ret_wait = (unsigned)((windows[w].ms - (now - a->windows[w].began_ms) + 999) / 1000);
	if (a->windows[w].n + n > windows[w].most)
		return false;
	a->windows[w].n += n;
	return true;
}

const char *agents_refuse_model(struct agent *a, struct view provider, bool configured, int *ret_status,
				unsigned *ret_wait)
{
	bool openai = view_is(provider, "openai");

	*ret_wait = 0;
	*ret_status = 403;
	if (!manifest_has_api(&a->manifest, provider))
		return openai ? "OpenAI is not among the permissions.apis of this agent"
			      : "Anthropic is not among the permissions.apis of this agent";
	*ret_status = 500;
	if (!configured)
		return openai ? "OpenAI API key not configured in Assegai Settings."
			      : "Anthropic API key not configured in Assegai Settings.";
	*ret_status = 429;
	return agents_window(a, openai ? AGENT_OPENAI : AGENT_ANTHROPIC, 1, ret_wait) ? NULL
										      : "Rate limit exceeded";
}
