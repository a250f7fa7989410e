"""Commands of `pumice` in processes of their own, as what takes long must not hold up cycles."""

import asyncio
import sys


async def output_of(*words: str, within_s: float) -> bytes:
    """What a command prints. Raises RuntimeError with its error output if it fails, TimeoutError if it takes too long."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "pumice", *words, stdout=pipe, stderr=pipe)
    try:
        async with asyncio.timeout(within_s):
            printed, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise RuntimeError(errors.decode(errors="replace").strip())
    return printed
