"""Events in commit order, and the counters made from them."""
