# Made by sdk/python/generate from _async/__init__.py. Edit that instead.
"""The client with async and await. The client without them is made of this one by sdk/python/generate."""
