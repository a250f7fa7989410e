"""How Pumice speaks with a Kubernetes API server.

`login.find` reads a kubeconfig or the pod's service account into an `Access`; a `client.Client` made of it sends calls, with pacing,
repetition and the fence; `reflector.Reflector` follows a resource; `pods` holds the writes to pods; `election.Election` elects a leader and
is the fence; `recorder.Recorder` tells of events. What can be decided without a server is pure and stands by itself: `view` (what a
consumer still has to be told), `lease` (who leads), `events` (counting and folding), `retry` (what may be repeated), `pace`.
"""
