/*
 * Log lines: see log.h. One write(2) each, so that lines of several programs on
 * one descriptor do not mix.
 */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "clock.h"
#include "text.h"
#include "poison.h"

static const char *program_name = "paddock";
static enum log_level max_level = LOG_LEVEL_INFO;

void log_setup(const char *program, enum log_level level)
{
	program_name = program;
	max_level = level;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	static const char *const names[] = { "error", "warn", "info", "debug" };
	if (level > max_level)
		return;
	char line[1024], when[CLOCK_RFC3339_SIZE];
	clock_rfc3339(clock_wall_ms(), when);
	int n = snprintf(line, sizeof(line), "%s %s %s: ", when, program_name, names[level]);
	va_list ap;
	va_start(ap, fmt);
	n += vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	size_t len = MIN((size_t)n, sizeof(line) - 2);
	/* A message may carry words from outside (a box's, a client's): it stays one line. */
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)line[i] < 0x20 && line[i] != '\t') || line[i] == 0x7f)
			line[i] = '?';
	line[len++] = '\n';
	/* Nothing to be done when standard error is gone. */
	ssize_t r = write(STDERR_FILENO, line, len);
	(void)r;
}

const char *log_quoted(struct view v)
{
	static struct buf slots[4];
	static unsigned next;
	struct buf *b = &slots[next++ % ELEMS(slots)];
	b->max = 512;
	buf_clear(b);
	text_quote(b, v, 96);
	buf_putc(b, 0);
	return b->bad ? "\"?\"" : b->p;
}
