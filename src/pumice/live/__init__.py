"""The programs of a live cluster: scheduler, controllers, webhooks; and the same scheduler in simulations of real objects (`whole/`)."""
