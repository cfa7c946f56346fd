"""All PyTorch programs of this folder, or those that are named: `torch_programs.py [NAME...]`."""
import sys

import counted
import references


def main(names):
    references.import_in_a_function("torch_base")
    import torch_base
    import torch_loops  # noqa: F401
    import torch_references
    counted.main(names, torch_base, torch_references.references)


if __name__ == "__main__":
    main(sys.argv[1:])
