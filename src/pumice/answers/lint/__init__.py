"""What is wrong, or will do other than meant, in a configuration, in queues, in what a cluster holds: findings with consequence and fix."""

from pumice.answers.lint.finding import Finding, Level
from pumice.answers.lint.lint import RULES, lint

__all__ = ["RULES", "Finding", "Level", "lint"]
