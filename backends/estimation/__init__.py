"""Statistics of reading sets and of the stream of their utilities, in NumPy alone: a service needs them too.

- ``effects``: what every estimator returns
- ``walsh``: interactions of an enumerated pool, by order
- ``values``: exact effects of an enumerated pool
- ``designs``: which masks to ask
- ``regression``, ``propensity``, ``sampling``, ``kernel``: effects from the masks that were asked
- ``metrics``: how good estimates are
- ``information``: what a mask tells of the memories it gates, and the guard against it
- ``drift``: whether a stream of utilities has fallen
- ``flags``: memory conflicts, the review queue, and how good flags are

Axes: N candidates, M masks that were asked, S = 2**N masks in all, indexed by bit code (candidate i is worth 2**i).
"""
