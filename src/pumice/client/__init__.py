"""How Pumice speaks with a Kubernetes API server.

`resolve_access.find` reads a kubeconfig or the pod's service account into an `Access`; a `client.Client` made of it sends calls, with
pacing, repetition and the fence; `reflector.Reflector` follows a resource; `pods` holds the writes to pods; `leader_election.Election`
elects a leader and is the fence; `events.EventRecorder` tells of events. What can be decided without a server is pure: `KnownObjects` (what
a consumer still has to be told), `LeaseCandidate` (who leads), `EventCorrelator` (counting and folding), `retry` (what may be repeated).
"""
