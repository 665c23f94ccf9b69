"""Interventions on retrieval: reading sets, masks, thresholds, fallbacks and what a gate observes. NumPy only."""
