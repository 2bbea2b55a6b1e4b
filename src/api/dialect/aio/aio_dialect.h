/*
 * AIO: the API that agent-infra's sandbox serves on its port 8080, here served for any sandbox by this
 * process, below /sandbox/{name}, or at the root of a listener that is bound to one sandbox (listeners:
 * {dialect: aio, sandbox: NAME}).
 */
#pragma once

#include "dialect.h"

extern const struct dialect aio_dialect;
