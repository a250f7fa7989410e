"""What users write: the wire forms of Kubernetes and Volcano objects, and how they are read.

Structs hold only the fields that scheduling reads; everything else is skipped by the decoder. Words here are Kubernetes'
words (pod, PodGroup, Queue object); `pumice.scheduler.model` turns them into the scheduler's (task, job, queue, node).
"""
