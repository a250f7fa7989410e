"""The objects that users write, of Kubernetes and Volcano: their form on the wire, and how they are read.

Structs hold only the fields that scheduling reads; everything else is skipped by the decoder. Words here are Kubernetes'
words (pod, PodGroup, Queue object); `pumice.scheduler.model` translates them into the scheduler's words (task, job, queue, node).
"""
