"""The objects that users write, of Kubernetes and Volcano: their form on the wire, and how they are read.

Structs hold only the fields that scheduling reads; everything else is skipped by the decoder. Words here are Kubernetes'
words (pod, PodGroup, Queue object); `pumice.scheduler.model` translates them into the scheduler's words (task, job, queue, node).
"""

from pumice.api.errors import InputError, did_you_mean
from pumice.api.json_objects import Key, Object, key_of, name_of, namespace_of, spec_of, status_of, uid_of
from pumice.api.times import duration, instant, rfc3339

__all__ = ["InputError", "Key", "Object", "did_you_mean", "duration", "instant", "key_of", "name_of", "namespace_of", "rfc3339"]
__all__ += ["spec_of", "status_of", "uid_of"]
