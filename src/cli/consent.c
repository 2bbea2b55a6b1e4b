/*
 * See consent.h.
 */
#include "consent.h"

#include <stdio.h>
#include <unistd.h>

#include "poison.h"

int consent_ask(bool yes, const char *question, struct err *e)
{
	char answer[8] = "";

	if (yes)
		return 0;
	if (!isatty(STDIN_FILENO))
		return err_set(e, ERR_INVALID, "consent is needed: read what it says, and add --yes");
	fprintf(stderr, "%s [y/N] ", question);
	if (!fgets(answer, sizeof(answer), stdin) || (answer[0] != 'y' && answer[0] != 'Y'))
		return err_set(e, ERR_CANCELLED, "nothing was changed");
	return 0;
}
