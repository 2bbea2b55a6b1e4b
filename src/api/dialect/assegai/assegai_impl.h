/*
 * Shared by the files of the dialect: assegai.c knows who asks, assegai_chain.c has what concerns chains.
 */
#pragma once

#include "agent.h"
#include "answer.h"

/* The agent that asks: known since it was authenticated. NULL: it has just been removed, and the answer is
 * sent. */
struct agent *assegai_agent(struct request *r);
/* Its entry in the audit log names the agent. */
void assegai_about(const struct request *r);
/* {"error": message} */
void assegai_refuse(struct request *r, int status, const char *message, unsigned wait);

extern const struct route assegai_chain_routes[];
