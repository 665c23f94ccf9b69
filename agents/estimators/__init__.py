"""Estimators of utility: which memory mattered to the reader's answer, and how sure one can be.

All have one interface (:mod:`.interface`): query, pool and a budget of reader calls in, effects and intervals out.

- :mod:`.proxies`: attention, similarity, chance; they measure no effect
- :mod:`.one_at_a_time`: leave-one-out, add-one-in
- :mod:`.randomised`: random masks with lasso (ContextCite), IPS, SNIPS, least squares, doubly robust; sampled Shapley
- :mod:`.pooled`: a utility head and a kernel that learn from other queries
- :mod:`.enumeration`: exact Shapley and Banzhaf values
"""
