"""JobFlow and JobTemplate: jobs that start when others have got far enough. `controller` runs flows, `progress` reads jobs."""
