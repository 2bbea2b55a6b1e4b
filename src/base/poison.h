/*
 * Functions that this tree does not use, because they have no bound, report no error, or use a static
 * buffer. Every .c includes this file last.
 */
#pragma once
/* Fortified libcs have some of them as macros. */
#undef sprintf
#undef vsprintf
#undef strcpy
#undef strcat
#undef alloca
#undef strdupa
#undef strndupa
#pragma GCC poison strcpy strcat sprintf vsprintf strtok strtok_r
#pragma GCC poison strtol strtoul strtoll strtoull atoi atol atoll sscanf gets
#pragma GCC poison alloca strdupa strndupa
