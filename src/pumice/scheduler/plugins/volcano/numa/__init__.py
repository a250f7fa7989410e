"""What a kubelet with the static CPU manager does: which CPUs a container would get, and whether the topology policy admits it."""
