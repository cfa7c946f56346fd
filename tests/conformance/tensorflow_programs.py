"""All TensorFlow programs of this folder, or those that are named: `tensorflow_programs.py [NAME...]`."""
import sys

import counted
import references


def main(names):
    references.import_in_a_function("tensorflow_base")
    import tensorflow_base
    import tensorflow_eager  # noqa: F401
    import tensorflow_graphs  # noqa: F401
    import tensorflow_references
    counted.main(names, tensorflow_base, tensorflow_references.references)


if __name__ == "__main__":
    main(sys.argv[1:])
