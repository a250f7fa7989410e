"""Stories over several cycles, each on a screen. `play` tells the language."""
