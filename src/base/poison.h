/*
 * Functions that this tree does not use, because each has cost somebody
 * dearly: no bound, no error, or a static buffer. Included last by every .c.
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
