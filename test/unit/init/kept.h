/*
 * For the tests of kept processes: the calls as functions, on one box with one
 * client that every test gets fresh.
 */
#pragma once

#include "box.h"

extern struct box box;
extern struct client client;

int kept_start_box(void **state);
int kept_stop_box(void **state);
int kept_connect(void **state);
int kept_close(void **state);
#define KEPT_TEST(f) cmocka_unit_test_setup_teardown(f, kept_connect, kept_close)

/* Starts with .keep; the stream's number, and the pid from Started. */
uint32_t kept_start(struct client *c, struct run r, uint32_t *ret_pid);
/* The same, and detached by CANCEL. */
uint32_t kept_start_alone(struct run r);
struct offsets {
	uint64_t out, err, control;
};
/* The stream's number; what Attached said. */
uint32_t kept_attach(struct client *c, uint32_t pid, struct offsets at, struct offsets *ret);
/* Attaches and reads to the end. */
void kept_read(uint32_t pid, struct offsets at, struct answer *a, struct wire_exited *ret_exited);
/* ERR_OK or the code of FAIL. */
enum err_code kept_input(struct client *c, uint32_t pid, uint32_t channel, struct view data, bool close);
enum err_code kept_resize(uint32_t pid, uint32_t cols, uint32_t rows);
/* How many; or minus the code of FAIL. */
int kept_signal(const struct wire_signal *s);
/* What Processes says of one; false: nothing. Only numbers and flags are filled. */
bool kept_info(uint32_t pid, struct wire_process_info *ret, struct wire_exited *ret_exited);
void kept_wait_ended(uint32_t pid);
void kept_cancel(struct client *c, uint32_t stream);
void kept_assert_text(const struct buf *b, const char *text);
