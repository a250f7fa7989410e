"""The words that the shell of a simulated container knows: as much of each as tools ask for that look into a container or copy a file."""

import io
import posixpath
import re
import tarfile
from collections.abc import Callable

from pumice.api import rfc3339
from pumice.cluster.nodes.shell import MOST_WRITTEN, Exit, Ran, Shell, Word


def _names(arguments: list[str]) -> list[str]:
    return [each for each in arguments if not each.startswith("-") or each == "-"]


def _flags(arguments: list[str]) -> str:
    return "".join(each[1:] for each in arguments if each.startswith("-"))


def _input(shell: Shell, arguments: list[str], stdin: bytes) -> bytes:
    names = _names(arguments)
    return b"".join(stdin if name == "-" else shell.read(name) for name in names) if names else stdin


def _echo(shell: Shell, arguments: list[str], stdin: bytes) -> Ran:
    bare = arguments[:1] == ["-n"]
    return Ran((" ".join(arguments[bare:]) + ("" if bare else "\n")).encode())


def _printf(shell: Shell, arguments: list[str], stdin: bytes) -> Ran:
    form, *values = arguments or [""]
    text = form.replace("\\n", "\n").replace("\\t", "\t")
    for value in values:
        text = re.sub(r"%[sd]", lambda _, value=value: value, text, count=1)  # type: ignore[misc]
    return Ran(text.encode())


def _env(shell: Shell, arguments: list[str], stdin: bytes) -> Ran:
    if arguments:
        return Ran("".join(f"{shell.env[name]}\n" for name in arguments if name in shell.env).encode(), int(arguments[0] not in shell.env))
    return Ran("".join(f"{name}={value}\n" for name, value in shell.env.items()).encode())


def _cat(shell: Shell, arguments: list[str], stdin: bytes) -> Ran:
    return Ran(_input(shell, arguments, stdin))


def _ls(shell: Shell, arguments: list[str], stdin: bytes) -> Ran:
    lines = []
    for name in _names(arguments) or ["."]:
        path = shell.path(name)
        if shell.is_folder(path):
            lines += shell.names(path)
        else:
            shell.read(name)
            lines.append(name)
    return Ran("".join(f"{line}\n" for line in lines).encode())


def _cd(shell: Shell, arguments: list[str], stdin: bytes) -> Ran:
    path = shell.path((arguments or ["/"])[0])
    if not shell.is_folder(path):
        raise FileNotFoundError("No such file or directory")
    shell.folder = path
    return Ran()


def _head(shell: Shell, arguments: list[str], stdin: bytes) -> Ran:
    count = next((int(each) for each in re.findall(r"\d{1,6}", " ".join(arguments))), 10)
    names = [each for each in _names(arguments) if not each.isdigit()]
    return Ran(b"".join(_input(shell, names, stdin).splitlines(keepends=True)[:count]))


def _grep(shell: Shell, arguments: list[str], stdin: bytes) -> Ran:
    wanted, *names = _names(arguments)
    lines = _input(shell, names, stdin).splitlines(keepends=True)
    found = [line for line in lines if (wanted.encode() in line) != ("v" in _flags(arguments))]
    return Ran(b"" if "q" in _flags(arguments) else b"".join(found), int(not found))


def _wc(shell: Shell, arguments: list[str], stdin: bytes) -> Ran:
    data = _input(shell, arguments, stdin)
    counts = {"l": data.count(b"\n"), "w": len(data.split()), "c": len(data)}
    return Ran((" ".join(str(counts[each]) for each in (_flags(arguments) or "lwc") if each in counts) + "\n").encode())


def _touch(shell: Shell, arguments: list[str], stdin: bytes) -> Ran:
    for name in _names(arguments):
        shell.write(name, shell.files.get(shell.path(name), b""))
    return Ran()


def _mkdir(shell: Shell, arguments: list[str], stdin: bytes) -> Ran:
    for name in _names(arguments):
        shell.write(shell.path(name) + "/.", b"")
        shell.written[shell.path(name) + "/"] = shell.written.pop(shell.path(shell.path(name) + "/."))
    return Ran()


def _rm(shell: Shell, arguments: list[str], stdin: bytes) -> Ran:
    for name in _names(arguments):
        path = shell.path(name)
        gone = [each for each in shell.written if each == path or each.startswith(f"{path}/")]
        if not gone and "f" not in _flags(arguments):
            raise FileNotFoundError("No such file or directory")
        for each in gone:
            del shell.written[each]
    return Ran()


def _tee(shell: Shell, arguments: list[str], stdin: bytes) -> Ran:
    for name in _names(arguments):
        shell.write(name, stdin)
    return Ran(stdin)


def _test(shell: Shell, arguments: list[str], stdin: bytes) -> Ran:
    match [each for each in arguments if each != "]"]:
        case ["-n", text]:
            holds = text != ""
        case ["-z", text]:
            holds = text == ""
        case ["-d", name]:
            holds = shell.is_folder(shell.path(name))
        case ["-e" | "-f" | "-s" | "-r", name]:
            holds = shell.path(name) in shell.files or (arguments[0] == "-e" and shell.is_folder(shell.path(name)))
        case [left, "=" | "==" | "-eq", right]:
            holds = left == right
        case [left, "!=" | "-ne", right]:
            holds = left != right
        case rest:
            holds = rest not in ([], [""])
    return Ran(code=int(not holds))


def _sh(shell: Shell, arguments: list[str], stdin: bytes) -> Ran:
    if arguments[:1] and "c" in _flags(arguments[:1]):
        line = arguments[1] if len(arguments) > 1 else ""
    else:
        line, stdin = _input(shell, arguments, stdin).decode(errors="replace"), b""
    try:
        return shell.line(line, stdin)
    except Exit as end:
        return end.ran


def _exit(shell: Shell, arguments: list[str], stdin: bytes) -> Ran:
    raise Exit(int(arguments[0]) & 255 if arguments and arguments[0].isdigit() else shell.code)


def _tar(shell: Shell, arguments: list[str], stdin: bytes) -> Ran:
    """What kubectl cp needs: `tar cf - PATH` and `tar xmf - -C FOLDER`."""
    flags, *rest = arguments or [""]
    names = []
    folder = shell.folder
    while rest:
        each = rest.pop(0)
        if each == "-C":
            folder = shell.path((rest or ["/"]).pop(0))
        elif each != "-":
            names.append(each)
    if "x" in flags:
        with tarfile.open(fileobj=io.BytesIO(stdin), mode="r:") as archive:
            for member in archive:
                data = archive.extractfile(member) if member.isfile() and member.size <= MOST_WRITTEN else None
                if data is not None:
                    shell.write(posixpath.join(folder, member.name.lstrip("/")), data.read())
        return Ran()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name in names:
            path = posixpath.normpath(posixpath.join(folder, name))
            inside = {each: text for each, text in shell.files.items() if each == path or each.startswith(f"{path}/")}
            if not inside:
                raise FileNotFoundError("No such file or directory")
            for each, text in inside.items():
                entry = tarfile.TarInfo((name.rstrip("/") + each[len(path) :]).lstrip("/"))
                entry.size, entry.mode = len(text), 0o644
                if each.endswith("/"):
                    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(entry, io.BytesIO(text))
    return Ran(packed.getvalue())


def _says(text: Callable[[Shell], str]) -> Word:
    return lambda shell, arguments, stdin: Ran(f"{text(shell)}\n".encode())


def _nothing(code: int) -> Word:
    return lambda shell, arguments, stdin: Ran(code=code)


WORDS: dict[str, Word] = {
    "[": _test,
    "cat": _cat,
    "cd": _cd,
    "date": _says(lambda shell: rfc3339(shell.now())),
    "echo": _echo,
    "env": _env,
    "exit": _exit,
    "export": _nothing(0),
    "false": _nothing(1),
    "grep": _grep,
    "head": _head,
    "hostname": _says(lambda shell: shell.env.get("HOSTNAME", "")),
    "id": _says(lambda shell: "uid=0(root) gid=0(root)"),
    "ls": _ls,
    "mkdir": _mkdir,
    "printenv": _env,
    "printf": _printf,
    "pwd": _says(lambda shell: shell.folder),
    "rm": _rm,
    "sh": _sh,
    "sleep": _nothing(0),
    "tar": _tar,
    "tee": _tee,
    "test": _test,
    "touch": _touch,
    "true": _nothing(0),
    "wc": _wc,
    "whoami": _says(lambda shell: "root"),
}
WORDS |= {"bash": _sh, "ash": _sh}
