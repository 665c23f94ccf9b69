"""Statistics of randomised reading sets, in NumPy alone: a service needs them as much as an experiment does.

- ``effects``: what every estimator returns
- ``walsh``: interactions of an enumerated pool, by order
- ``values``: exact effects of an enumerated pool
- ``designs``: which masks to ask
- ``regression``, ``propensity``, ``sampling``, ``kernel``: effects from the masks that were asked
- ``metrics``: how good estimates are

Axes: N candidates, M masks that were asked, S = 2**N masks in all, indexed by bit code (candidate i is worth 2**i).
"""
