/*
 * Reads which package mirrors an image names, for the sets of egress policies. The image's files are
 * not trusted: a separate process (the same program with the role "survey") reads them and writes a
 * record that the keeper stores without parsing it.
 */
#pragma once

#include "config_sets.h"
#include "loop.h"

struct keeper_call;
struct keeper;

#define SURVEY_MAX CONFIG_SETS_RECORD

/* The call Survey: answered when the process has ended. */
int survey_call(struct keeper_call *c, const void *msg, struct err *e) _must_check_;
void survey_forget_calls(struct keeper *k);
/* The role itself: fd 3 takes the record, 4 is the root, 5, where there is one, /usr of the machine. */
int survey_main(void);
