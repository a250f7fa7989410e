"""Dynamic resource allocation: what claims ask for, the devices that there are, and which of them a node gives to a pod."""
