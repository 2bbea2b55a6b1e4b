/*
 * /v1/file/watch: what happens to files.
 */
#include "aio_impl.h"
#include "poison.h"
void aio_watch_done(struct aio_state *s)
{
}
const struct route aio_watch_routes[] = { { 0 } };
