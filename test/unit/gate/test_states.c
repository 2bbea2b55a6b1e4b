/*
 * The table of a connection's states: every event is dealt with or refused in every
 * state, every state can be reached and ends, and nothing else is possible.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "flow_impl.h"
#include "poison.h"

#define BIT(s) (1u << (s))
#define ALL    (BIT(FLOW_STATES) - 1)

static bool is_open(enum flow_state s)
{
	return s >= FLOW_UNSEEN && s <= FLOW_DRAIN;
}

/* What never comes in a state, because it is not awaited there: written down a second time, so that a line
 * that was forgotten in the table is not taken for one that was left out. */
static bool never(enum flow_state s, enum flow_event e)
{
	switch (e) {
	case EVENT_BYTES:
	case EVENT_END:
		return s == FLOW_RESOLVE || s == FLOW_CONNECT || s == FLOW_WAIT;
	case EVENT_RESOLVED:
		return s != FLOW_RESOLVE && s != FLOW_OVER;
	case EVENT_DIALLED:
		return s != FLOW_CONNECT && s != FLOW_OVER;
	case EVENT_BYTES_BACK:
	case EVENT_END_BACK:
		return !is_open(s) && s != FLOW_OVER;
	case EVENT_GONE:
	case EVENT_TIME:
	case EVENT_POLICY:
	case FLOW_EVENTS:
		break;
	}
	return false;
}

static void test_every_event_in_every_state(void **state)
{
	for (int s = 0; s < FLOW_STATES; s++)
		for (int e = 0; e < FLOW_EVENTS; e++) {
			const struct flow_step *step = states_step(s, e);
			if ((step->run != NULL) == never(s, e))
				fail_msg("state %d, event %d", s, e);
			/* What is dealt with leads somewhere, what is refused nowhere. */
			if ((step->run != NULL) != (step->next != 0) || (step->next & ~ALL))
				fail_msg("state %d, event %d leads to %x", s, e, step->next);
		}
}

static uint32_t next_of(enum flow_state s)
{
	uint32_t next = 0;

	for (int e = 0; e < FLOW_EVENTS; e++)
		next |= states_step(s, e)->next;
	return next;
}

static void test_every_state_is_reached_and_ends(void **state)
{
	uint32_t seen = BIT(FLOW_LOOK) | BIT(FLOW_PROXY) | BIT(FLOW_DNS), before = 0;

	while (seen != before) {
		before = seen;
		for (int s = 0; s < FLOW_STATES; s++)
			seen |= before & BIT(s) ? next_of(s) : 0;
	}
	assert_int_equal(seen, ALL);
	for (int s = 0; s < FLOW_STATES; s++) {
		/* By the client's going, and by time: nothing stays for ever. */
		assert_true(states_step(s, EVENT_GONE)->next == BIT(FLOW_OVER));
		assert_true(states_step(s, EVENT_TIME)->next & BIT(FLOW_OVER));
	}
	assert_int_equal(next_of(FLOW_OVER), BIT(FLOW_OVER));
}

/* Nothing comes back to where its bytes were not judged yet, and what passes unseen stays so. */
static void test_judging_is_not_undone(void **state)
{
	for (int s = FLOW_OPAQUE; s <= FLOW_DRAIN; s++)
		assert_int_equal(next_of(s) & (BIT(FLOW_LOOK) | BIT(FLOW_PROXY) | BIT(FLOW_RESOLVE) |
					       BIT(FLOW_CONNECT) | BIT(FLOW_UNSEEN)),
				 0);
	assert_int_equal(next_of(FLOW_OPAQUE), BIT(FLOW_OPAQUE) | BIT(FLOW_OVER));
	assert_int_equal(next_of(FLOW_INTERCEPT), BIT(FLOW_INTERCEPT) | BIT(FLOW_OVER));
	assert_int_equal(next_of(FLOW_DNS), BIT(FLOW_DNS) | BIT(FLOW_OVER));
	/* Only what has been connected is open. */
	for (int s = FLOW_LOOK; s <= FLOW_RESOLVE; s++)
		for (int to = FLOW_UNSEEN; to <= FLOW_DRAIN; to++)
			assert_false(next_of(s) & BIT(to));
}

/* A new policy is asked wherever something was judged by the old one, and can only end it. */
static void test_policy(void **state)
{
	for (int s = 0; s < FLOW_STATES; s++) {
		const struct flow_step *step = states_step(s, EVENT_POLICY);
		bool judged = s == FLOW_CONNECT || is_open(s);
		assert_int_equal(step->next, BIT(s) | (judged ? BIT(FLOW_OVER) : 0));
		assert_true((step->run == flow_on_policy) == judged);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_event_in_every_state),
		cmocka_unit_test(test_every_state_is_reached_and_ends),
		cmocka_unit_test(test_judging_is_not_undone),
		cmocka_unit_test(test_policy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
