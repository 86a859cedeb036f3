"""Connect's REST interface, to the letter: routes over `herder/requests.py`."""
