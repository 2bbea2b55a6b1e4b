/*
 * See progress.h.
 */
#include <stdio.h>
#include <unistd.h>

#include "clock.h"
#include "progress.h"
#include "show.h"

#include "poison.h"

#define AFTER_MS 500 /* what is quicker needs no words */
#define EVERY_MS 100

static void tell(struct progress *p, uint64_t now)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(512);
	uint64_t ms = MAX(now - p->began_ms, 1u);

	buf_puts(&b, "\r\033[K");
	show_clean(&b, view_of(p->name));
	buf_puts(&b, "  ");
	show_size(&b, p->done);
	if (p->total) {
		buf_puts(&b, " of ");
		show_size(&b, p->total);
		buf_printf(&b, "  %u%%", (unsigned)(100 * MIN(p->done, p->total) / p->total));
	}
	buf_puts(&b, "  ");
	show_size(&b, p->done * 1000 / ms);
	buf_puts(&b, "/s");
	if (p->total && p->done && p->done < p->total) {
		uint64_t left_s = (p->total - p->done) / MAX(p->done * 1000 / ms, 1u);
		buf_printf(&b, "  %llu:%02llu left", (unsigned long long)(left_s / 60),
			   (unsigned long long)(left_s % 60));
	}
	if (!b.bad)
		(void)!write(STDERR_FILENO, buf_view(&b).p, buf_len(&b));
	p->told_ms = now;
}

static void on_moved(void *arg, size_t bytes)
{
	struct progress *p = arg;
	uint64_t now = clock_mono_ms();

	p->done += bytes;
	if (now - p->began_ms >= AFTER_MS && now - p->told_ms >= EVERY_MS)
		tell(p, now);
}

void progress_begin(struct progress *p, struct client *c, const char *name, uint64_t total)
{
	*p = (struct progress){ .shown = isatty(STDERR_FILENO) == 1,
				.total = total,
				.began_ms = clock_mono_ms() };
	const char *slash = strrchr(name, '/');
	snprintf(p->name, sizeof(p->name), "%s", slash && slash[1] ? slash + 1 : name);
	if (!p->shown)
		return;
	c->on_moved = on_moved;
	c->moved_arg = p;
}

void progress_end(struct progress *p, struct client *c)
{
	c->on_moved = NULL;
	if (p->shown && p->told_ms)
		(void)!write(STDERR_FILENO, "\r\033[K", 4);
}
