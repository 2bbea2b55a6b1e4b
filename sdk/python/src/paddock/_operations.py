"""Which method serves which operation of api/openapi.yaml. The tests compare the two."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional, Tuple, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def operation(*names: str, fields: Optional[Mapping[str, str]] = None, fixed: Tuple[str, ...] = ()) -> Callable[[F], F]:
    """Marks a method with the operationIds that it calls. `fields` gives the parameter for a member of the request whose name
    differs; `fixed` names members that the method itself sets."""

    def mark(method: F) -> F:
        method.__dict__["operation"] = names, dict(fields or {}), fixed
        return method

    return mark


def operations(*classes: type) -> Dict[str, Any]:
    """{operationId: [methods]} of these classes."""
    found: Dict[str, Any] = {}
    for each in classes:
        for method in vars(each).values():
            method = getattr(method, "__func__", method)
            for name in getattr(method, "__dict__", {}).get("operation", ((),))[0]:
                found.setdefault(name, []).append(method)
    return found
