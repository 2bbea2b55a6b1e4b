/*
 * A call that goes on: embedded as the first member by each operation's own
 * struct. Counts the credit of both directions, sends exactly one closing frame,
 * and frees itself after the loop's batch.
 */
#pragma once

#include "conn.h"

struct stream;

struct stream_ops {
	void (*on_data)(struct stream *s, struct view data); /* must call stream_consumed in time */
	void (*on_end)(struct stream *s);
	void (*on_ready)(struct stream *s); /* there may be room again */
	void (*on_step)(struct stream *s);  /* after stream_again */
	/* Stop and undo. With `lost` there is nobody to answer, and the stream is freed
	 * by the caller; without, the operation closes it (stream_fail). */
	void (*on_cancel)(struct stream *s, bool lost);
	void (*stop)(struct stream *s); /* by stream_close: no event may reach it any more; may be NULL */
	void (*free)(struct stream *s); /* gives back everything, the struct too */
};

struct stream {
	struct list node;  /* of conn->streams */
	struct conn *conn; /* NULL after stream_close */
	struct init *init;
	const struct stream_ops *ops;
	uint32_t id;
	uint16_t type;
	uint16_t channel; /* of the DATA that on_data gets */
	bool ended;       /* the caller's END was seen */
	uint32_t window;  /* bytes of DATA that we may send */
	uint32_t credit;  /* bytes of DATA that the caller may send */
	uint32_t owed;    /* consumed and not yet given back as credit */
	struct loop_task task;
};

void stream_open(struct stream *s, const struct conn_call *call, const struct stream_ops *ops);
/* Unlinks and frees at the end of the batch. Sends nothing. */
void stream_close(struct stream *s);

/* How much DATA may be sent now: window and the link's queue allow it; 0: wait for on_ready. */
size_t stream_room(const struct stream *s);
void stream_data(struct stream *s, uint16_t channel, struct view v); /* v.n <= stream_room */
/* Bytes of DATA that were sent and for which no credit has come: perhaps not consumed. */
size_t stream_unconsumed(const struct stream *s);
void stream_reply(struct stream *s, const struct pb_msg *m, const void *msg);
void stream_finish(struct stream *s, const struct pb_msg *m, const void *msg); /* the last reply */
void stream_fail(struct stream *s, const struct err *e);
void stream_consumed(struct stream *s, size_t n);
void stream_again(struct stream *s); /* on_step, in the next round of the loop */

/* From conn.c. */
int stream_on_frame(struct stream *s, const struct frame *f);
