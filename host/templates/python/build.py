"""Makes `guest.wasm` of `app.py`, and puts the manifest `guest.toml` on it."""

import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / ".venv" / ("Scripts" if sys.platform == "win32" else "bin")


def run(*command):
    subprocess.run(command, cwd=HERE, check=True)


def main():
    if not PROGRAMS.is_dir():
        venv.create(HERE / ".venv", with_pip=True)
    run(PROGRAMS / "python", "-m", "pip", "install", "--quiet", "--requirement", "requirements.txt")
    run(PROGRAMS / "componentize-py", "-q", "-d", "wit", "-w", "guest", "componentize", "app", "-o", "guest.wasm")
    try:
        run("omc-host", "guests", "pack", "guest.wasm")
    except FileNotFoundError:
        sys.exit("omc-host is not on PATH, so guest.wasm has no manifest yet; run `omc-host guests pack guest.wasm`")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as failed:
        sys.exit(failed.returncode)
