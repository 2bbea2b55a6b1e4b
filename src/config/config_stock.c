/*
 * Sandkasten's own images: see config_stock.h.
 */
#include "config_stock.h"

#include "poison.h"

#define PREFIX "sandbox-runtime:"

bool config_stock_is(struct view image)
{
	if (view_starts(image, PREFIX))
		image = view_skip(image, strlen(PREFIX));
	return view_is(image, "base") || view_is(image, "python") || view_is(image, "node");
}
