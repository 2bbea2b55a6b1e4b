/*
 * The examples that `paddock agent new` writes: the files of examples/agents.
 */
#pragma once

#include <stddef.h>

#define AGENT_EXAMPLE(kind)                                                                                  \
	extern const char agent_##kind##_node[], agent_##kind##_node_manifest[], agent_##kind##_python[],    \
		agent_##kind##_python_manifest[];                                                            \
	extern const size_t agent_##kind##_node_size, agent_##kind##_node_manifest_size,                     \
		agent_##kind##_python_size, agent_##kind##_python_manifest_size
AGENT_EXAMPLE(monitor);
AGENT_EXAMPLE(dca);
AGENT_EXAMPLE(analyst);
#undef AGENT_EXAMPLE
