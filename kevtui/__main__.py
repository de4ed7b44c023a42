"""`python -m kevtui` is `kevtui`."""

import sys

from kevtui.cli import main

if __name__ == "__main__":
    sys.exit(main())
