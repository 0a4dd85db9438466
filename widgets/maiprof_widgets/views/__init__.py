"""Linked views: an analysis, a figure, and the fields of the link they read and set."""
