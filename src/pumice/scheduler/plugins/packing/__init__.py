"""What the policies for shared GPUs have in common: cards and what is left on them, fragments, the plugin that they are variants of."""
