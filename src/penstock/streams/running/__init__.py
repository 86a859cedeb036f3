"""A topology as an application: its settings, its topics, its state on disk, and its life."""
