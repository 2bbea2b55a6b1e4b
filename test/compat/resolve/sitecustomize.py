"""For clients that reach a sandbox only by its name: the names of COMPAT_DOMAIN are this machine."""

import os
import socket

find = socket.getaddrinfo


def getaddrinfo(host, *rest, **options):
    name = host.decode() if isinstance(host, bytes) else host or ""
    return find("127.0.0.1" if f".{name}".endswith("." + os.environ["COMPAT_DOMAIN"]) else host, *rest, **options)


socket.getaddrinfo = getaddrinfo
