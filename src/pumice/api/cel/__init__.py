"""CEL, the Common Expression Language, as Kubernetes 1.36 has it in device selectors and in the rules of custom kinds.

`program` is what others use: it compiles an expression for an environment and evaluates it. Behind it `syntax` reads text into a `tree`,
`check` says whether its kinds agree, `evaluate` makes steps of what is not constant; `functions` is the table that the modules of `library`
enter their functions into; `run` bounds what an evaluation costs.
"""
