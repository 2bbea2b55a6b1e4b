# What AIO's routes run in the sandbox begins with this: the script that follows has its words in sys.argv[1:] and ends
# with done() or refuse(), which print the answer as one JSON object. It runs as the sandbox's user, and what it keeps is
# below ~/.aio.
import json
import os
import sys

HOME = os.path.expanduser("~/.aio")
MOST = 4 << 20  # characters of a text in an answer


def answer(success, message, data):
    sys.stdout.write(json.dumps({"success": success, "message": message, "data": data}))
    sys.stdout.flush()
    sys.exit(0)


def done(data, message="Operation successful"):
    answer(True, message, data)


def refuse(message):
    answer(False, message, None)


def why(e):
    """An exception in words."""
    return getattr(e, "strerror", None) or str(e) or type(e).__name__


def run(main):
    try:
        main(*sys.argv[1:])
    except (OSError, ValueError, KeyError, RecursionError) as e:
        where = f"{e.filename}: " if getattr(e, "filename", None) else ""
        refuse(f"{where}{why(e)}")
