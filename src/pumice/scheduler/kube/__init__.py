"""The parts of the action `schedule`: how kube-scheduler looks for a node, says why there is none, and makes room by preemption."""
