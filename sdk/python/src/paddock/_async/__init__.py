"""The client with async and await. The client without them is made of this one by sdk/python/generate."""
