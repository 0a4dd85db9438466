"""The command line: one module a verb, no logic of its own."""
