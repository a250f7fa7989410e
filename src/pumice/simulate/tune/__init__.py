"""The configuration that would have served a workload better: what `pumice tune` does.

`days.py` plays single days of a workload, `space.py` says which configurations there are, `search.py` looks for one with Optuna,
`advice.py` decides whether it is recommended, `report.py` shows what was found. Only the command loads these modules.
"""
