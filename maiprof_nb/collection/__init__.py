"""Making the recordings: what samples, simulates and asks a running job. Imports torch lazily."""
