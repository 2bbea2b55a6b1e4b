/*
 * paddockd, the keeper.
 *
 * Role:   creates and removes boxes; parent of the other programs.
 * Peers:  paddock-api (a socketpair, calls of api/wire.proto), the boxes' PID 1
 *         (a listening socket each; the keeper connects and hands the stream to
 *         the api without reading it).
 * Holds:  the listening sockets, namespaces, mounts, control groups, uid ranges,
 *         the image store.
 * Runs:   as root with a trimmed capability set (serve.c: trim_capabilities), in a
 *         mount namespace of its own.
 * Never:  parses a client's bytes, reads a box's output, resolves a path inside
 *         a box by string.
 *
 * Roles by argv[1]: "serve" (fd 3 is the configuration, from `paddock serve`),
 * "doctor" (prints what this machine can give; fd 3 likewise), "sweep" (removes dead trees),
 * "flush" (writes out what boxes wrote), "copy" (copies a tree), "survey" (reads what an
 * image says about where packages come from).
 */
#include <stdio.h>
#include <string.h>

#include "clone.h"
#include "flush.h"
#include "serve.h"
#include "survey.h"
#include "sweep.h"
#include "poison.h"

int main(int argc, char **argv)
{
	const char *role = argc == 2 || (argc == 3 && strcmp(argv[1], "doctor") == 0) ? argv[1] : "";
	if (strcmp(role, "serve") == 0)
		return serve_main(3);
	if (strcmp(role, "doctor") == 0)
		return doctor_main(3, argc > 2 && strcmp(argv[2], "json") == 0);
	if (strcmp(role, "sweep") == 0)
		return sweep_main();
	if (strcmp(role, "flush") == 0)
		return flush_main();
	if (strcmp(role, "copy") == 0)
		return clone_main();
	if (strcmp(role, "survey") == 0)
		return survey_main();
	if (strcmp(role, "--version") == 0) {
		printf("paddockd %s\n", PADDOCK_VERSION);
		return 0;
	}
	fprintf(stderr, "paddockd is started by `paddock serve`; see paddock(1)\n");
	return 2;
}
