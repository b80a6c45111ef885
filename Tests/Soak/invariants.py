"""Every invariant, and how a history is held to them."""

import answers
import flatness
import grants
from weather import Weather

ALL = [*grants.ALL, *answers.ALL, *flatness.ALL]


def look(history):
    """A verdict of each."""
    weather = Weather(history)
    return [invariant(history, weather) for invariant in ALL]
