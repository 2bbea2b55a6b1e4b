"""What the gate said about a box's connections, by the API."""

import paddock


def log(box, query=""):
    response = box.client.get(f"{box.path}/egress/log{query}")
    assert response.status == 200, response
    return response.json()


def last(box, **what):
    """The newest verdict with these parts; they come a moment after the deed."""
    def look():
        fitting = [v for v in log(box, "?limit=256")["verdicts"] if all(v[key] == value for key, value in what.items())]
        return fitting and fitting[-1]

    return paddock.until(look, f"there is a verdict {what}")
