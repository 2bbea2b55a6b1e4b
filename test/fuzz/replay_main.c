/*
 * Runs a fuzz target over every file of the directories given, as a plain test in
 * TAP: a line for each directory. An input that breaks the target ends the program;
 * the file is named on standard error before it is tried.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fd.h"
#include "fuzz.h"

#include "poison.h"

#define INPUT_MAX (16u << 20)

/* The number of inputs, or -errno. */
static int replay(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0, r = 0;

	if (!dir)
		return -errno;
	for (struct dirent *d; r == 0 && (d = readdir(dir));) {
		struct buf input = BUF_INIT(INPUT_MAX);
		uint8_t *exact;

		if (d->d_name[0] == '.')
			continue;
		r = fd_slurp(dirfd(dir), d->d_name, &input);
		/* A copy of the exact size: reading past the end is then an error that ASan sees. */
		exact = malloc(buf_len(&input) ? buf_len(&input) : 1);
		if (!exact)
			r = -ENOMEM;
		if (r == 0) {
			fprintf(stderr, "%s/%s\n", path, d->d_name);
			memcpy(exact, buf_len(&input) ? buf_view(&input).p : "", buf_len(&input));
			LLVMFuzzerTestOneInput(exact, buf_len(&input));
			n++;
		}
		free(exact);
		buf_done(&input);
	}
	closedir(dir);
	return r < 0 ? r : n;
}

int main(int argc, char **argv)
{
	int failed = 0;

	printf("1..%d\n", argc - 1);
	for (int i = 1; i < argc; i++) {
		int n = replay(argv[i]);

		/* An empty corpus is a mistake of the build, not a success. */
		if (n > 0)
			printf("ok %d - %d inputs of %s\n", i, n, argv[i]);
		else
			printf("not ok %d - %s: %s\n", i, argv[i], n ? strerror(-n) : "no inputs");
		failed |= n <= 0;
		fflush(stdout);
	}
	return failed;
}
