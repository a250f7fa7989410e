"""CEL, the Common Expression Language, as Kubernetes has it in device selectors and in the rules of custom kinds.

`syntax` reads an expression into a tree, `evaluate` gives its value, `calls` has the functions, `values` the kinds
of values that JSON has not. What is beyond it is refused by name when the expression is read.
"""
