/*
 * The role "serve": everything that paddockd sets up before and around its loop.
 */
#pragma once

#include "keeper.h"

int serve_main(int config_fd);
/* paddock-api said that it is ready. */
void serve_ready(struct keeper *k);
/* The role "doctor": prints what the machine can give; 0 when boxes can be made. */
int doctor_main(void);
