"""Subscription patterns of consumer groups, in RE2's syntax."""
