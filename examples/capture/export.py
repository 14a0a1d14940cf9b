# SPDX-License-Identifier: Apache-2.0
"""export.py - the third way in: an archive of torch.export, which orrery reads itself.

    python export.py mlp.pt2 && orrery convert export mlp.pt2 -o mlp.orr"""

import sys

import torch

from decoder import Decoder


def main(path):
    with torch.device("meta"):
        model = Decoder("tiny")
    program = torch.export.export(model, (torch.zeros(2, 128, dtype=torch.int64, device="meta"),))
    torch.export.save(program, path)


if __name__ == "__main__":
    main(sys.argv[1])
