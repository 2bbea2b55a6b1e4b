/*
 * The smallest limits of a sandbox. Settings, clients' wishes and the keeper's own check have the same: what
 * one of them accepts must not fail at the next. The largest are settings (`max.limits`).
 */
#pragma once

#define BOUNDS_CPU_MILLI_MIN 10 /* thousandths of a core */
#define BOUNDS_MEMORY_MB_MIN 16 /* PID 1, a shell and their page tables */
#define BOUNDS_PIDS_MIN      4
#define BOUNDS_NOFILE_MIN    32 /* a dynamic linker, a shell and a pipeline */
#define BOUNDS_DISK_MB_MIN   1
