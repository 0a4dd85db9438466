"""Questions put to a session: pure functions that answer with a DataFrame. None draws."""
