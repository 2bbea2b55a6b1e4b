/*
 * What is not done yet of spend.h.
 */
#include "spend.h"

#include "poison.h"

#define NOT_YET "this installation has no signer: nothing can be signed or sent"

struct job *spend_list(struct core *c, const struct actor *a, const struct spend_filter *f, job_done *done,
		       void *arg, struct err *e)
{
	err_set(e, ERR_UNSUPPORTED, NOT_YET);
	return NULL;
}

struct job *spend_get(struct core *c, const struct actor *a, struct view id, job_done *done, void *arg,
		      struct err *e)
{
	err_set(e, ERR_UNSUPPORTED, NOT_YET);
	return NULL;
}

struct job *spend_approve(struct core *c, const struct actor *a, struct view id, const uint8_t digest[32],
			  job_done *done, void *arg, struct err *e)
{
	err_set(e, ERR_UNSUPPORTED, NOT_YET);
	return NULL;
}

struct job *spend_reject(struct core *c, const struct actor *a, struct view id, struct view note,
			 job_done *done, void *arg, struct err *e)
{
	err_set(e, ERR_UNSUPPORTED, NOT_YET);
	return NULL;
}

struct job *spend_cancel(struct core *c, const struct actor *a, struct view id, job_done *done, void *arg,
			 struct err *e)
{
	err_set(e, ERR_UNSUPPORTED, NOT_YET);
	return NULL;
}

struct job *spend_speed_up(struct core *c, const struct actor *a, struct view id, job_done *done, void *arg,
			   struct err *e)
{
	err_set(e, ERR_UNSUPPORTED, NOT_YET);
	return NULL;
}

struct job *spend_wallet_answer(struct core *c, const struct actor *a, struct view id,
				const struct spend_answer *w, job_done *done, void *arg, struct err *e)
{
	err_set(e, ERR_UNSUPPORTED, NOT_YET);
	return NULL;
}

struct job *spend_wallets(struct core *c, const struct actor *a, job_done *done, void *arg, struct err *e)
{
	err_set(e, ERR_UNSUPPORTED, NOT_YET);
	return NULL;
}

struct job *spend_rules_get(struct core *c, const struct actor *a, enum spend_scope s, struct view ref,
			    job_done *done, void *arg, struct err *e)
{
	err_set(e, ERR_UNSUPPORTED, NOT_YET);
	return NULL;
}

struct job *spend_rules_put(struct core *c, const struct actor *a, enum spend_scope s, struct view ref,
			    const struct sgn_rules *rules, job_done *done, void *arg, struct err *e)
{
	err_set(e, ERR_UNSUPPORTED, NOT_YET);
	return NULL;
}

struct job *spend_spent(struct core *c, const struct actor *a, enum spend_scope s, struct view ref,
			job_done *done, void *arg, struct err *e)
{
	err_set(e, ERR_UNSUPPORTED, NOT_YET);
	return NULL;
}

struct job *spend_signer(struct core *c, const struct actor *a, job_done *done, void *arg, struct err *e)
{
	err_set(e, ERR_UNSUPPORTED, NOT_YET);
	return NULL;
}

struct job *spend_pause(struct core *c, const struct actor *a, bool cancel_pending, job_done *done, void *arg,
			struct err *e)
{
	err_set(e, ERR_UNSUPPORTED, NOT_YET);
	return NULL;
}

struct job *spend_audit(struct core *c, const struct actor *a, uint64_t after, uint32_t max, job_done *done,
			void *arg, struct err *e)
{
	err_set(e, ERR_UNSUPPORTED, NOT_YET);
	return NULL;
}

struct job *spend_audit_verify(struct core *c, const struct actor *a, job_done *done, void *arg,
			       struct err *e)
{
	err_set(e, ERR_UNSUPPORTED, NOT_YET);
	return NULL;
}

struct job *spend_ask(struct agent *a, const struct agent_ask *ask, bool async, job_done *done, void *arg,
		      struct err *e)
{
	err_set(e, ERR_UNSUPPORTED, NOT_YET);
	return NULL;
}

struct job *spend_ask_status(struct agent *a, struct view id, job_done *done, void *arg, struct err *e)
{
	err_set(e, ERR_UNSUPPORTED, NOT_YET);
	return NULL;
}

struct job *spend_ask_cancel(struct agent *a, struct view id, job_done *done, void *arg, struct err *e)
{
	err_set(e, ERR_UNSUPPORTED, NOT_YET);
	return NULL;
}

struct job *spend_account(struct agent *a, struct view chain, job_done *done, void *arg, struct err *e)
{
	err_set(e, ERR_UNSUPPORTED, NOT_YET);
	return NULL;
}

int spend_chains(struct core *c, const struct actor *a, void (*each)(void *arg, const struct spend_chain *x),
		 void *arg, struct err *e)
{
	return err_set(e, ERR_UNSUPPORTED, NOT_YET);
}

void spend_watch(struct core *c, struct spend_watch *w)
{
	list_init(&w->link);
}

void spend_unwatch(struct spend_watch *w)
{
	if (w->link.next)
		list_del(&w->link);
}

void spend_elsewhere_add(struct core *c, struct spend_elsewhere *b)
{
	list_init(&b->link);
}

void spend_elsewhere_changed(struct core *c)
{
}

void spend_elsewhere_answer(struct core *c, struct spend_errand *q, const struct spend_answer *w)
{
}
