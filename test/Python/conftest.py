import pathlib
import sys

# The helper packages are used from the source tree, without an installation.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
