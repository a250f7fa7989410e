"""The client of a Kubernetes API server.

`resolve_access.find` reads a kubeconfig or the pod's service account into an `Access`; a `client.Client` made of it sends calls, with rate
limit, retries and the fence; `reflector.Reflector` follows a resource; `bind_and_evict` writes to pods; `leader_election.Election` elects a
leader and is the fence; `event_recorder.EventRecorder` writes events. Decisions that need no server are pure: `KnownVersions` (changes to
deliver), `LeaseCandidate` (which replica leads), `EventCorrelator` (counting and folding), `Retry` (which calls may be repeated).
"""
