/*
 * The files of the dashboard as scripts/dashboard built them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct dashboard_file {
	const char *path, *type, *etag; /* path NULL: the end */
	const unsigned char *gzip;
	size_t gzip_size, size; /* size: of what is compressed */
	bool lasting;           /* its name says what is in it */
};

extern const struct dashboard_file dashboard_files[];
