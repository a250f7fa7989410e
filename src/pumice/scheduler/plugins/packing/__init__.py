"""What the policies for shared GPUs have in common: cards, what is left on them and in fragments, the plugin that they are variants of."""
