/*
 * sudo and su without set-uid programs: boxes have no_new_privs, so nothing in
 * them can gain rights by being executed. Our own /usr/bin/sudo (sudo_client.c,
 * the same static program as PID 1 under another name) asks PID 1 instead, which
 * is root of the box already and starts the command as any other of its
 * children, on the caller's descriptors.
 *
 * The socket is SOCK_SEQPACKET at an abstract name of the box's network
 * namespace, bound by PID 1 before any other program runs. Who asks is what the
 * kernel says (SO_PEERCRED); every byte that comes in is hostile.
 *
 *   client  'R' flags, with descriptors: the request, cwd, stdin, stdout, stderr
 *   PID 1   'S' the command runs, or 'E' and a sentence: it does not
 *   client  'K' signo: for the command's process group
 *   PID 1   'X' and four bytes, little-endian: its wait status
 *
 * The request is a sealed memfd of NUL-terminated strings: the user, the number
 * of arguments, the program's file ("" = the first argument), the arguments, the
 * environment. A client that goes away takes its command with it: whoever kills
 * the tree of a caller means the command, too.
 */
#pragma once

#include "arena.h"
#include "loop.h"
#include "wire_gen.h"

#define SUDO_ADDRESS  "paddock/sudo" /* behind the NUL of an abstract name */
#define SUDO_CLIENTS  64             /* at once */
#define SUDO_REQUEST  (2u << 20)     /* bytes, as much as execve takes */
#define SUDO_FDS      5
#define SUDO_TERMINAL 1 /* flag: stdin is a terminal that becomes the command's own */

struct init;

/* Listens, unless the name is taken. */
void sudo_start(struct init *in);
/* Before the first program: an image with /etc/paddock/no-sudo has none. */
void sudo_look(struct init *in);
void sudo_stop(struct init *in);
/* A child has exited, perhaps one of ours. */
void sudo_reaped(struct init *in, int pid, int status);

/* Pure: reads a request; the message and `ret_file` point into the text and the arena. -EBADMSG, -ENOMEM. */
int sudo_read_request(struct view text, struct arena *a, struct wire_start *ret,
		      const char **ret_file) _must_check_;
