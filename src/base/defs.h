/*
 * The few macros that every layer uses. No types, no functions.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define _cleanup_(f)   __attribute__((cleanup(f)))
#define _must_check_   __attribute__((warn_unused_result))
#define _printf_(a, b) __attribute__((format(printf, a, b)))
#define _unused_       __attribute__((unused))
#define _noreturn_     __attribute__((noreturn))
#define _fallthrough_  __attribute__((fallthrough))

#define ELEMS(a)  (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* A number that is a macro, as text within a literal. */
#define LITERAL(x)    LITERAL_OF(x)
#define LITERAL_OF(x) #x

/* The object that embeds a member, from the member's address. */
#define CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* Hand a resource on: yields its value and leaves the "none" value behind. */
#define TAKE_FD(fd)                                                                                          \
	({                                                                                                   \
		int _taken = (fd);                                                                           \
		(fd) = -EBADF;                                                                               \
		_taken;                                                                                      \
	})
#define TAKE_PTR(p)                                                                                          \
	({                                                                                                   \
		__typeof__(p) _t = (p);                                                                      \
		(p) = NULL;                                                                                  \
		_t;                                                                                          \
	})
