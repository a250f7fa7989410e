"""Clusters that live in files and on simulated clocks."""
