"""What Prometheus' own clients tell of each process, so that the usual panels and alerts have it here as well: time, memory, files.

The memory, the files and the start are read from Linux; elsewhere they are not told.
"""

import os
import resource
from pathlib import Path

from pumice.http.metrics import Declared, counter, gauge, render

PROC = Path("/proc")


class ProcessMetrics(Declared):
    _cpu = counter("process_cpu_seconds_total", "The time that the process has used of processors, in seconds.")
    _resident = gauge("process_resident_memory_bytes", "Resident memory.")
    _virtual = gauge("process_virtual_memory_bytes", "Virtual memory.")
    _files = gauge("process_open_fds", "Open file descriptors.")
    _most_files = gauge("process_max_fds", "The most file descriptors that may be open.")
    _started = gauge("process_start_time_seconds", "When the process started, in seconds since 1970.")

    def page(self) -> str:
        used = os.times()
        self._cpu.replace({(): used.user + used.system})
        self._most_files.set(float(resource.getrlimit(resource.RLIMIT_NOFILE)[0]))
        if PROC.is_dir():
            fields = (PROC / "self/stat").read_text().rpartition(")")[2].split()
            booted = next(line for line in (PROC / "stat").read_text().splitlines() if line.startswith("btime"))
            self._started.set(float(booted.split()[1]) + int(fields[19]) / os.sysconf("SC_CLK_TCK"))
            self._virtual.set(float(fields[20]))
            self._resident.set(float(fields[21]) * os.sysconf("SC_PAGE_SIZE"))
            self._files.set(float(sum(1 for _ in (PROC / "self/fd").iterdir())))
        return render(self.declared)
