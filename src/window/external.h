/*
 * Links that lead elsewhere open in the user's browser.
 */
#pragma once

/* An address that confine.h has let pass: http or https, of plain characters. */
void external_open(const char *uri);
