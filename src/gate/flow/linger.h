/* The end of a connection whose client has been answered: it reads the answer before it sees a reset. */
#pragma once

struct gate_box;

/* Takes the fd. Where too many linger already it is closed at once. */
void linger_start(struct gate_box *b, int fd);
void linger_end_all(struct gate_box *b);
