/*
 * What the interpreters of code contexts run: the texts of src/api/context,
 * linked in by scripts/embed-text.
 */
#pragma once

#include <stddef.h>

extern const char contexts_python[], contexts_javascript[], contexts_bash[], contexts_r[], contexts_java[];
extern const size_t contexts_python_size, contexts_javascript_size, contexts_bash_size, contexts_r_size,
	contexts_java_size;
