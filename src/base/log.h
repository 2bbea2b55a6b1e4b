/*
 * Lines to standard error: time, program, level, message, key=value pairs.
 * Programs log; libraries return errors. Text from outside goes through
 * log_quoted (or text_quote) so that it cannot forge a line.
 */
#pragma once

#include "view.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

void log_setup(const char *program, enum log_level level);
void log_line(enum log_level level, const char *fmt, ...) _printf_(2, 3);
/* Quotes into one of a few static slots: for use as an argument of one log call. */
const char *log_quoted(struct view v);

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)
