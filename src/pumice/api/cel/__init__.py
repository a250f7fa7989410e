"""CEL, the Common Expression Language, as Kubernetes 1.36 has it in device selectors and in the rules of custom kinds.

Other packages use `program.Program`: an expression that is compiled once and evaluated for many sets of names. `syntax` parses text into
a `tree`, `check` says whether its types agree, and `evaluate` turns what is not constant into steps. `functions` is the table of the
functions that the modules of `library` define; it also bounds the cost of an evaluation. Errors and the budget, which many name who never
have an expression, are in modules that load nothing else.
"""
