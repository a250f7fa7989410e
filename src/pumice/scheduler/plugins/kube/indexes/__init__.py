"""Who stands where, counted by what rules ask about: pods that a selector means, terms of pods, assumed volumes and
devices. What a single plugin asks about (ports, disks, attached volumes) it counts in its own file.

A count is made when it is first asked for and kept from then on: it is an index of the cluster (`Cluster.index`), so that it is right
after every move, in thought or for good, and asking it costs as much as there are nodes, not pods. What nobody asks costs nothing.
"""
