/*
 * From PID 1's words about files to the core's: checked, with views into the message. -EBADMSG is a box
 * that says nonsense; -ENOMEM.
 */
#pragma once

#include "file.h"

#define FILES_METADATA_MAX 64 /* of a file */

struct wire_file_entries;
struct wire_file_events;
struct wire_file_info;
struct wire_grep_matches;

int files_info_take(struct arena *a, const struct wire_file_info *w, struct file_info *ret) _must_check_;
/* All of a message: as many as it has. */
int files_info_entries(struct arena *a, const struct wire_file_entries *w,
		       struct file_info **ret) _must_check_;
int files_info_matches(struct arena *a, const struct wire_grep_matches *w,
		       struct file_match **ret) _must_check_;
int files_info_events(struct arena *a, const struct wire_file_events *w,
		      struct file_event **ret) _must_check_;
