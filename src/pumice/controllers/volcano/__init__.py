"""Volcano's CronJob: jobs at the times of a schedule. `schedule` reads and computes the times, `controller` makes the jobs."""
