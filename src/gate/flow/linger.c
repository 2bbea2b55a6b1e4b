/*
 * The end behind an answer. A socket that is closed while something is unread in it resets the connection,
 * and the client may lose the answer that says why. So what the client still sends is read and dropped, until
 * it closes or has had its time. The flow itself is over.
 */
#include "linger.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "fd.h"
#include "flow.h"
#include "poison.h"

#define LINGER_MS    2000
#define LINGER_BYTES (16u * 1024 * 1024)
#define LINGER_BOX   512 /* of one box */
#define LINGER_ALL   2048

struct parting {
	struct list link; /* box->lingers */
	struct gate_box *box;
	struct loop_io io;
	struct loop_timer timer;
	size_t dropped;
};

static void end(struct parting *l)
{
	loop_io_close(&l->io);
	loop_timer_stop(&l->timer);
	list_del(&l->link);
	l->box->n_lingers--;
	l->box->all->n_lingers--;
	free(l);
}

static void on_time(struct loop_timer *t)
{
	end(CONTAINER(t, struct parting, timer));
}

static void on_bytes(struct loop_io *io, uint32_t events)
{
	struct parting *l = CONTAINER(io, struct parting, io);
	struct flows *g = l->box->all;
	ssize_t n = recv(io->fd, g->scratch, sizeof(g->scratch), MSG_DONTWAIT);

	(void)events;
	l->dropped += n > 0 ? (size_t)n : 0;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || l->dropped > LINGER_BYTES)
		end(l);
}

void linger_start(struct gate_box *b, int fd)
{
	_cleanup_(closep) int mine = fd;

	if (b->n_lingers >= LINGER_BOX || b->all->n_lingers >= LINGER_ALL)
		return;
	struct parting *l = calloc(1, sizeof(*l));
	if (!l)
		return;
	l->box = b;
	(void)shutdown(mine, SHUT_WR);
	if (loop_io_start(b->all->loop, &l->io, mine, EPOLLIN, on_bytes) < 0) {
		free(l);
		return;
	}
	(void)TAKE_FD(mine);
	list_append(&b->lingers, &l->link);
	b->n_lingers++;
	b->all->n_lingers++;
	loop_timer_start(b->all->loop, &l->timer, LINGER_MS, on_time);
}

void linger_end_all(struct gate_box *b)
{
	LIST_EACH (it, &b->lingers)
		end(CONTAINER(it, struct parting, link));
}
