"""DataFrame -> plotly figure: pure functions that know neither sessions nor widgets."""
