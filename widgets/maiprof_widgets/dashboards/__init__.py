"""Arrangements of views round one shared link."""
