/*
 * What gen-wire embeds of api/agentbox.
 */
#pragma once

#include "reflect.h"
extern const struct reflect_file agentbox_descriptors[];
