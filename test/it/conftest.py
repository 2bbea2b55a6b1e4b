from fixtures import *  # noqa: F401,F403 - pytest finds fixtures by their names here
