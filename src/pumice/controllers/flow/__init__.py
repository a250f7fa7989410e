"""JobFlow and JobTemplate: jobs that start when others have got far enough.

`controller` runs flows, `progress` reads how far their jobs are, `record` tells of each job in the flow's status.
"""
