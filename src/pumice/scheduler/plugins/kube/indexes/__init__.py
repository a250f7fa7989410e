"""Counts of the pods on nodes, by what several rules need: pods that a selector selects, terms of pods, assumed volumes and devices. What a
single plugin needs (ports, disks, attached volumes) is counted in the plugin's file.

Each is an index of the cluster (`Cluster.index`): it is counted at the first question and kept up to date by every move, also in dry runs.
A question costs time in proportion to the nodes, not to the pods. An index that nobody uses costs nothing.
"""
