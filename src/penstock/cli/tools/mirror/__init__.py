"""Clusters copied to other clusters."""
