/*
 * One buffer for everything that is read and passed on within one handler.
 * There are a thousand PIDs 1 on a machine, nearly all idle: its pages are given
 * back when the last operation is over.
 */
#pragma once

#include "frame.h"

#define SCRATCH_SIZE FRAME_DATA_MAX

extern char scratch[SCRATCH_SIZE];

void scratch_release(void);
