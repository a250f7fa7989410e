"""The part of CEL, the Common Expression Language, in which device selectors are written; what is beyond it is refused by name."""
