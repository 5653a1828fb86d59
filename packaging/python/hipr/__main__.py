"""``python -m hipr``: the program ``hipr`` of this installation."""

import os
import sys

from ._files import program


def main() -> None:
    path = program()
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    main()
