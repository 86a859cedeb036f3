"""The process: settings, HTTP, a start and a stop in good order."""
