/*
 * Frames over a stream socket on the loop: the one transport of the internal
 * protocol (api <-> PID 1, api <-> keeper). Owns the socket. Knows nothing of
 * streams and their windows: that is the user's business.
 *
 * Bytes go out at once where the socket takes them, else they wait in a queue
 * with a maximum; a peer that lets it fill is closed (-ENOBUFS), so whoever
 * sends DATA looks at link_backlog first. Who answers frames, and not more than
 * so and so much each, sets `hold` instead: while the peer does not take its
 * answers, nothing more is read from it. on_frame gets a view into the input
 * buffer: gone when it returns, and after link_stop. on_closed is called once,
 * never from within link_send (it is deferred), and not after link_stop. Every
 * handler may stop the link and free what embeds it.
 */
#pragma once

#include "frame.h"
#include "loop.h"
#include "pb.h"

#define LINK_FDS       8    /* fds received and not yet claimed by a frame */
#define LINK_FDS_OUT   4096 /* fds that wait to be sent */
#define LINK_QUEUE_MAX (8u * 1024 * 1024)

struct link;
struct link_fd;

struct link_ops {
	/* fd is -1, or owned by the callee when the frame has FRAME_FD. */
	void (*on_frame)(struct link *l, const struct frame *f, int fd);
	void (*on_closed)(struct link *l, int error); /* 0: the peer closed in order; else -errno */
	void (*on_drained)(struct link *l);           /* the queue is empty again; may be NULL */
};

struct link {
	struct loop_io io;
	struct loop_task closing;
	const struct link_ops *ops;
	struct buf in, out;
	int fds[LINK_FDS];
	unsigned n_fds;
	struct link_fd *out_fds; /* none where none wait */
	unsigned n_out_fds, room_out_fds;
	uint64_t sent; /* bytes that left; out begins here */
	size_t hold;   /* while more bytes than this wait, no frame is taken; 0: they always are */
	bool pass_fds; /* fds are accepted at all (the keeper's channel); else an fd closes the link */
	bool bulk;     /* much came at once, not long ago: buffers are kept, and more is read */
	struct loop_timer trim;
	int error;
	bool *gone; /* set while a handler runs: link_stop tells it */
};

/* Takes fd (made non-blocking). */
int link_start(struct link *l, struct loop *loop, int fd, bool pass_fds,
	       const struct link_ops *ops) _must_check_;
void link_stop(struct link *l); /* closes; accepts one that was never started (zeroed) */
static inline bool link_open(const struct link *l)
{
	return l->io.fd > 0 && l->error == 0;
}

int link_send(struct link *l, const struct frame *f);
int link_send_msg(struct link *l, uint16_t type, uint8_t kind, uint8_t flags, uint32_t stream,
		  uint32_t deadline_ms, const struct pb_msg *m, const void *msg);
/* With an fd (which is taken, also on failure). */
int link_send_msg_fd(struct link *l, uint16_t type, uint8_t kind, uint8_t flags, uint32_t stream,
		     const struct pb_msg *m, const void *msg, int fd);
/* FAIL with the code, errno and text of an error. */
int link_fail(struct link *l, uint16_t type, uint32_t stream, const struct err *e);
/* Decodes the body of a FAIL frame; never fails (a bad body is ERR_INTERNAL). */
void link_read_fail(const struct frame *f, struct err *ret);
/* Bytes that wait to be sent. */
size_t link_backlog(const struct link *l);
