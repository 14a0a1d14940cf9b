# SPDX-License-Identifier: Apache-2.0
"""Where the golden data and the executable specifications are.

tests/run unpacks the archives of tests/golden/data and says where in ORR_GOLDEN.  By hand:

    ORR_GOLDEN=$(tests/golden/data/unpack build) PATH=$PWD/build/bin:$PATH tests/golden/test_link"""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ORACLE = ROOT / "tests" / "oracle"

if "ORR_GOLDEN" not in os.environ:
    sys.exit("ORR_GOLDEN is not set; run this through tests/run, or set it to what tests/golden/data/unpack prints")
GOLDEN = pathlib.Path(os.environ["ORR_GOLDEN"])
