"""kube-scheduler's filters and scorers, vectorised over nodes, one file each; Volcano's predicates and nodeorder use them too.

Arithmetic follows upstream to the bit: integer-valued float64 and truncation where upstream divides integers.
"""
