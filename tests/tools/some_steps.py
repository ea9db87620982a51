"""A function that another module has as a step."""


def triple(a: int) -> int:
    return 3 * a
