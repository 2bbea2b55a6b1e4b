/*
 * Counters of interfaces: see netdev.h.
 */
#include "netdev.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "buf.h"
#include "fd.h"
#include "num.h"
#include "poison.h"

#define TEXT_MAX (64u * 1024)
#define RX_BYTES 0
#define TX_BYTES 8

static struct view next_word(struct view *line)
{
	while (line->n && line->p[0] == ' ')
		*line = view_skip(*line, 1);
	size_t n = 0;
	while (n < line->n && line->p[n] != ' ')
		n++;
	struct view word = view_head(*line, n);
	*line = view_skip(*line, n);
	return word;
}

static int add_line(struct view counts, struct netdev_usage *u)
{
	for (unsigned i = 0; i <= TX_BYTES; i++) {
		uint64_t n;
		if (num_u64(next_word(&counts), &n) < 0)
			return -EBADMSG;
		if (i == RX_BYTES)
			u->rx_bytes += n;
		if (i == TX_BYTES)
			u->tx_bytes += n;
	}
	return 0;
}

int netdev_parse(struct view text, struct netdev_usage *ret)
{
	struct netdev_usage u = { 0 };
	struct view rest = text;

	while (rest.p && rest.n) {
		struct view counts, line = view_split(rest, '\n', &rest);
		(void)view_split(line, ':', &counts);
		if (!counts.p)
			continue; /* a heading */
		int r = add_line(counts, &u);
		if (r < 0)
			return r;
	}
	*ret = u;
	return 0;
}

int netdev_usage(pid_t pid, struct netdev_usage *ret)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/net/dev", (int)pid);
	int r = fd_slurp(AT_FDCWD, path, &text);
	return r < 0 ? r : netdev_parse(buf_view(&text), ret);
}
