/*
 * The handshake: see rest_websocket.h.
 */
#include "rest_websocket.h"

#include "http1_response.h"
#include "poison.h"

int rest_websocket_check(struct http_exchange *x, char ret_accept[WEBSOCKET_ACCEPT], struct err *e)
{
	if (x->version != 11 || !http1_response_has_option(http_get_header(x, "upgrade"), "websocket") ||
	    !http1_response_has_option(http_get_header(x, "connection"), "upgrade"))
		return err_set(e, ERR_BAD_REQUEST, "this is a WebSocket, by HTTP/1.1 and its Upgrade");
	if (!view_is(http_get_header(x, "sec-websocket-version"), "13"))
		return err_set(e, ERR_BAD_REQUEST, "the only version of WebSocket known here is 13");
	if (websocket_accept(http_get_header(x, "sec-websocket-key"), ret_accept) < 0)
		return err_set(e, ERR_BAD_REQUEST, "Sec-WebSocket-Key is not 16 bytes in base64");
	return 0;
}
